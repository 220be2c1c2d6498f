#!lua
-- seckill: one unit for a user who has not had his share of this sale; sent again for the same order, the first answer
-- KEYS[1] stock   string  rw     units left
-- KEYS[2] buyers  hash    rw     how often each user has bought
-- KEYS[3] orders  hash    rw     what is remembered of each order
-- ARGV[1] order   text    -      1..512 bytes
-- ARGV[2] user    text    -      1..512 bytes
-- ARGV[3] limit   int     count  1..1000000
-- RETURNS {n, times, replayed}  units left after it; how often this user has bought, this time included
-- RETURNS {-1, times, 0}        sold out
-- RETURNS {-2, 0, 0}            no such stock key
-- RETURNS {-4, 0, 0}            this order is another user's
-- RETURNS {-6, 0, 0}            this order was given back
-- RETURNS {-7, times, 0}        duplicate: this user has bought as often as he may
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include text
-- @include sale
local stock, buyers, orders = KEYS[1], KEYS[2], KEYS[3]
local order, user, limit = ARGV[1], ARGV[2], ARGV[3]

local err = apart({ stock, buyers, orders }, 3)
if err then return err end
local id
id, err = text_argument('order', order)
if not id then return err end
local who, most, sale, times, left
who, err = text_argument('user', user)
if not who then return err end
most, err = argument('limit', limit, 1, 1000000)
if not most then return err end
sale, err = sale_of(orders, id)
if err then return err end
if sale then
  if sale.user ~= who then return { -4, 0, 0 } end
  if sale.state == 'back' then return { -6, 0, 0 } end
  return { sale.left, sale.times, 1 }
end
left, err = stored(stock)
if err then return err end
if not left then return { -2, 0, 0 } end
times, err = times_of(buyers, who)
if err then return err end
if times >= most then return { -7, times, 0 } end
if left < 1 then return { -1, times, 0 } end
left = redis.call('DECRBY', stock, '1')
times = redis.call('HINCRBY', buyers, who, '1')
put_sale(orders, id, { state = 'sold', left = left, times = times, user = who })
return { left, times, 0 }
