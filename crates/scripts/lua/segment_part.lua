#!lua
-- segment_part: one segment's share of an order that is gathered over several nodes: take what is there, once
-- KEYS[1] segment   string  rw     units left in it
-- KEYS[2] order     string  rw     what is remembered of this order at this segment; restore gives it back
-- ARGV[1] quantity  int     units  1..9007199254740991
-- ARGV[2] least     int     units  1..9007199254740991; with fewer than this there, none are taken
-- ARGV[3] keep      int     ms     1..31622400000
-- RETURNS {n, replayed}  units taken, 0 or more; remembered even when none were there, so that a retry goes the same way
-- RETURNS {-2, 0}        no such segment
-- RETURNS {-4, 0}        this order asked this segment for another quantity
-- RETURNS {-6, 0}        this order was given back
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include orders
local segment, order = KEYS[1], KEYS[2]
local quantity, least, keep = ARGV[1], ARGV[2], ARGV[3]

local err = apart({ segment, order }, 2)
if err then return err end
local asked
asked, err = argument('quantity', quantity, 1, 9007199254740991)
if not asked then return err end
local fewest, kept, left
fewest, err = argument('least', least, 1, 9007199254740991)
if not fewest then return err end
kept, err = argument('keep', keep, 1, 31622400000)
if not kept then return err end
local state, taken, before = order_at(order)
if state == nil then return taken end
if state == 'back' then return { -6, 0 } end
if state then
  if before ~= asked then return { -4, 0 } end
  return { taken, 1 }
end
left, err = stored(segment)
if err then return err end
if not left then return { -2, 0 } end
taken = math.max(0, math.min(left, asked))
if taken < fewest then taken = 0 end
if taken > 0 then redis.call('DECRBY', segment, string.format('%.0f', taken)) end
remember(order, 'done', taken, asked, keep)
return { taken, 0 }
