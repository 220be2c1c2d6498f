#!lua flags=allow-oom
-- confirm: turn an order's hold into a sale, once
-- KEYS[1] stock     string  rw  units in total, held ones included
-- KEYS[2] reserved  string  rw  units held
-- KEYS[3] orders    hash    rw  what is remembered of each order
-- KEYS[4] ends      zset    rw  when something is to be done about an order
-- ARGV[1] order     text    -   1..512 bytes
-- ARGV[2] now?      int     ms  1..9007199254740991; 0 or nothing is the server's clock
-- RETURNS {n, replayed}  units sold; replayed is 1 when they were sold before
-- RETURNS {-1, 0}        the stock was lowered past this hold by other means; nothing was sold
-- RETURNS {-2, 0}        no such stock key
-- RETURNS {-5, 0}        nothing is remembered of this order
-- RETURNS {-6, 0}        this order is over: released or run out
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include text
-- @include clock
-- @include holds
local stock, reserved, orders, ends = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local order, at = ARGV[1], ARGV[2]

local err = apart({ stock, reserved, orders, ends }, 4) or wrong_type(ends, 'zset')
if err then return err end
local id
id, err = text_argument('order', order)
if not id then return err end
local now, hold
now, err = clock(at)
if not now then return err end
hold, err = hold_of(orders, id)
if err then return err end
if not hold then return { -5, 0 } end
if hold.state == 'sold' then return { hold.quantity, 1 } end
if hold.state ~= 'held' or hold.ends <= now then return { -6, 0 } end
local total, held = counters(stock, reserved)
if total == nil then return held end
if not total then return { -2, 0 } end
if total < hold.quantity then return { -1, 0 } end
if held < hold.quantity then return corrupt(reserved, string.format('%.0f', held)) end
local units = string.format('%.0f', hold.quantity)
redis.call('DECRBY', stock, units)
redis.call('DECRBY', reserved, units)
hold.state = 'sold'
put_hold(orders, ends, id, hold, now + hold.keep)
return { hold.quantity, 0 }
