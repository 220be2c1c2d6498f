#!lua flags=allow-oom
-- release: let an order's hold go, once
-- KEYS[1] reserved  string  rw  units held
-- KEYS[2] orders    hash    rw  what is remembered of each order
-- KEYS[3] ends      zset    rw  when something is to be done about an order
-- ARGV[1] order     text    -   1..512 bytes
-- ARGV[2] now?      int     ms  1..9007199254740991; 0 or nothing is the server's clock
-- RETURNS {n, replayed}  units let go; replayed is 1 when the hold was released or had run out before
-- RETURNS {-5, 0}        nothing is remembered of this order
-- RETURNS {-9, 0}        this order is sold
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include text
-- @include clock
-- @include holds
local reserved, orders, ends = KEYS[1], KEYS[2], KEYS[3]
local order, at = ARGV[1], ARGV[2]

local err = apart({ reserved, orders, ends }, 3) or wrong_type(ends, 'zset')
if err then return err end
local id
id, err = text_argument('order', order)
if not id then return err end
local now, hold, held
now, err = clock(at)
if not now then return err end
hold, err = hold_of(orders, id)
if err then return err end
if not hold then return { -5, 0 } end
if hold.state == 'sold' then return { -9, 0 } end
if hold.state ~= 'held' then return { hold.quantity, 1 } end
held, err = stored(reserved)
if err then return err end
if (held or 0) < hold.quantity then return corrupt(reserved, string.format('%.0f', held or 0)) end
redis.call('DECRBY', reserved, string.format('%.0f', hold.quantity))
-- Whether a sweep came first makes no difference to the answer.
local ran_out = hold.ends <= now
hold.state = ran_out and 'over' or 'back'
put_hold(orders, ends, id, hold, now + hold.keep)
return { hold.quantity, ran_out and 1 or 0 }
