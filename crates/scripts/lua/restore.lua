#!lua flags=allow-oom
-- restore: give units back to a stock, once per order
-- KEYS[1] stock     string  rw     units left
-- KEYS[2] order     string  rw     what is remembered of this order, by deduct_once or an earlier restore
-- ARGV[1] quantity  int     units  1..9007199254740991
-- ARGV[2] keep      int     ms     1..31622400000
-- ARGV[3] unknown   word    -      refuse|give
-- RETURNS {n, replayed}  units left after it; replayed is 1 when it was given back before
-- RETURNS {-2, 0}        no such stock key
-- RETURNS {-4, 0}        this order was for another quantity
-- RETURNS {-5, 0}        nothing is remembered of this order, and unknown is refuse
-- ERRORS BADARG CORRUPT OVERFLOW
-- @include numbers
-- @include orders
local stock, order = KEYS[1], KEYS[2]
local quantity, keep, unknown = ARGV[1], ARGV[2], ARGV[3]

local err = apart({ stock, order }, 2)
if err then return err end
local given
given, err = argument('quantity', quantity, 1, 9007199254740991)
if not given then return err end
local kept
kept, err = argument('keep', keep, 1, 31622400000)
if not kept then return err end
if unknown ~= 'refuse' and unknown ~= 'give' then return bad_argument('unknown', unknown, 'refuse or give') end
local state, before, answer = order_at(order)
if state == nil then return before end
if state and before ~= given then return { -4, 0 } end
if state == 'back' then return { answer, 1 } end
if not state and unknown == 'refuse' then return { -5, 0 } end
local left
left, err = stored(stock)
if err then return err end
if not left then return { -2, 0 } end
if left > 9007199254740991 - given then
  return redis.error_reply('OVERFLOW ' .. shown(stock) .. ' would pass 9007199254740991')
end
left = redis.call('INCRBY', stock, quantity)
-- A stock below zero is possible where a floor was; the record keeps only what a replay can answer.
remember(order, 'back', given, math.max(0, left), keep)
return { math.max(0, left), 0 }
