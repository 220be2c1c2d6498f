#!lua
-- deduct_once: as deduct, once per order: sent again, it gives the first answer and takes nothing
-- KEYS[1] stock     string  rw     units left
-- KEYS[2] order     string  rw     what is remembered of this order
-- ARGV[1] quantity  int     units  1..9007199254740991
-- ARGV[2] keep      int     ms     1..31622400000
-- RETURNS {n, replayed}  units left after it, 0 or more; replayed is 1 when it was done before
-- RETURNS {-1, 0}        fewer units left than asked; not remembered, a later try may succeed
-- RETURNS {-2, 0}        no such stock key
-- RETURNS {-4, 0}        this order was for another quantity
-- RETURNS {-6, 0}        this order was given back
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include orders
local stock, order = KEYS[1], KEYS[2]
local quantity, keep = ARGV[1], ARGV[2]

local err = apart({ stock, order }, 2)
if err then return err end
local asked
asked, err = argument('quantity', quantity, 1, 9007199254740991)
if not asked then return err end
local kept
kept, err = argument('keep', keep, 1, 31622400000)
if not kept then return err end
local state, before, answer = order_at(order)
if state == nil then return before end
if state then
  if before ~= asked then return { -4, 0 } end
  if state == 'back' then return { -6, 0 } end
  return { answer, 1 }
end
local left
left, err = stored(stock)
if err then return err end
if not left then return { -2, 0 } end
if left < asked then return { -1, 0 } end
left = redis.call('DECRBY', stock, quantity)
remember(order, 'done', asked, left, keep)
return { left, 0 }
