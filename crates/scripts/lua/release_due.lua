#!lua flags=allow-oom
-- release_due: let go of holds that have run out and forget old orders, a bounded number a call
-- KEYS[1] reserved  string  rw     units held
-- KEYS[2] orders    hash    rw     what is remembered of each order
-- KEYS[3] ends      zset    rw     when something is to be done about an order
-- ARGV[1] limit     int     count  1..1000
-- ARGV[2] now?      int     ms     1..9007199254740991; 0 or nothing is the server's clock
-- RETURNS {n, units, forgotten, more}  holds let go, their units, orders forgotten; more is 1 when there may be others
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include clock
-- @include holds
local reserved, orders, ends = KEYS[1], KEYS[2], KEYS[3]
local limit, at = ARGV[1], ARGV[2]

local err = apart({ reserved, orders, ends }, 3) or wrong_type(ends, 'zset')
if err then return err end
local most
most, err = argument('limit', limit, 1, 1000)
if not most then return err end
local now, due, held
now, err = clock(at)
if not now then return err end
due, err = due_holds(orders, ends, now, most)
if err then return err end
held, err = stored(reserved)
if err then return err end
if (held or 0) < due.units then return corrupt(reserved, string.format('%.0f', held or 0)) end
if due.units > 0 then redis.call('DECRBY', reserved, string.format('%.0f', due.units)) end
end_holds(orders, ends, due, now)
return { #due.ran_out, due.units, #due.forget, due.full and 1 or 0 }
