#!lua flags=allow-oom
-- seckill_restore: give an order's unit back to the sale and the right to buy back to its user, once
-- KEYS[1] stock   string  rw  units left
-- KEYS[2] buyers  hash    rw  how often each user has bought
-- KEYS[3] orders  hash    rw  what is remembered of each order
-- ARGV[1] order   text    -   1..512 bytes
-- RETURNS {n, times, replayed}  units left after it; how often its user has bought now
-- RETURNS {-2, 0, 0}            no such stock key
-- RETURNS {-5, 0, 0}            nothing is remembered of this order
-- ERRORS BADARG CORRUPT OVERFLOW
-- @include numbers
-- @include text
-- @include sale
local stock, buyers, orders = KEYS[1], KEYS[2], KEYS[3]
local order = ARGV[1]

local err = apart({ stock, buyers, orders }, 3)
if err then return err end
local id
id, err = text_argument('order', order)
if not id then return err end
local sale, left, times
sale, err = sale_of(orders, id)
if err then return err end
if not sale then return { -5, 0, 0 } end
if sale.state == 'back' then return { sale.left, sale.times, 1 } end
left, err = stored(stock)
if err then return err end
if not left then return { -2, 0, 0 } end
times, err = times_of(buyers, sale.user)
if err then return err end
if times < 1 then return corrupt(buyers, string.format('%.0f', times)) end
if left < 0 then return corrupt(stock, string.format('%.0f', left)) end
if left >= 9007199254740991 then
  return redis.error_reply('OVERFLOW ' .. shown(stock) .. ' would pass 9007199254740991')
end
sale.state = 'back'
sale.left = redis.call('INCRBY', stock, '1')
sale.times = redis.call('HINCRBY', buyers, sale.user, '-1')
if sale.times == 0 then redis.call('HDEL', buyers, sale.user) end
put_sale(orders, id, sale)
return { sale.left, sale.times, 0 }
