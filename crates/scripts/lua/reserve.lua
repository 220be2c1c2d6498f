#!lua
-- reserve: hold units for an order until its end; sent again, it gives the first answer and holds nothing more
-- KEYS[1] stock     string  r      units in total, held ones included
-- KEYS[2] reserved  string  rw     units held; absent is 0
-- KEYS[3] orders    hash    rw     what is remembered of each order
-- KEYS[4] ends      zset    rw     when something is to be done about an order
-- ARGV[1] order     text    -      1..512 bytes
-- ARGV[2] quantity  int     units  1..9007199254740991
-- ARGV[3] ttl       int     ms     1..31622400000
-- ARGV[4] keep      int     ms     1..31622400000
-- ARGV[5] now?      int     ms     1..9007199254740991; 0 or nothing is the server's clock
-- RETURNS {n, replayed, ends}  units still available after it; when the hold ends
-- RETURNS {-1, available, 0}   fewer units available than asked; nothing was held
-- RETURNS {-2, 0, 0}           no such stock key
-- RETURNS {-4, 0, 0}           this order was for another quantity
-- RETURNS {-6, 0, 0}           this order is over: released or run out
-- RETURNS {-8, 0, 0}           holds that ran out are being freed, a thousand at a time: call again
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include text
-- @include clock
-- @include holds
local stock, reserved, orders, ends = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local order, quantity, ttl, keep, at = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local err = apart({ stock, reserved, orders, ends }, 4) or wrong_type(ends, 'zset')
if err then return err end
local id
id, err = text_argument('order', order)
if not id then return err end
local asked, lasts, kept, now
asked, err = argument('quantity', quantity, 1, 9007199254740991)
if not asked then return err end
lasts, err = argument('ttl', ttl, 1, 31622400000)
if not lasts then return err end
kept, err = argument('keep', keep, 1, 31622400000)
if not kept then return err end
now, err = clock(at)
if not now then return err end
local hold
hold, err = hold_of(orders, id)
if err then return err end
if hold then
  if hold.quantity ~= asked then return { -4, 0, 0 } end
  if hold.state == 'sold' or (hold.state == 'held' and hold.ends > now) then return { hold.left, 1, hold.ends } end
  return { -6, 0, 0 }
end
local total, held = counters(stock, reserved)
if total == nil then return held end
if not total then return { -2, 0, 0 } end
if total - held < asked then
  -- Short: free what has run out, then look again.
  local due
  due, err = due_holds(orders, ends, now, 1000)
  if err then return err end
  if due.units > held then return corrupt(reserved, string.format('%.0f', held)) end
  end_holds(orders, ends, due, now)
  if due.units > 0 then held = redis.call('DECRBY', reserved, string.format('%.0f', due.units)) end
  if total - held < asked then
    if due.full then return { -8, 0, 0 } end
    return { -1, math.max(0, total - held), 0 }
  end
end
redis.call('INCRBY', reserved, quantity)
local last = math.min(9007199254740991, now + lasts)
hold = { state = 'held', quantity = asked, ends = last, left = total - held - asked, keep = kept }
put_hold(orders, ends, id, hold, hold.ends)
return { hold.left, 0, hold.ends }
