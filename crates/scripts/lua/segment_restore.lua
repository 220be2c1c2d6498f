#!lua flags=allow-oom
-- segment_restore: give back what an order took, to the segments it came from, once
-- KEYS[1]    order     string  rw  what is remembered of this order
-- KEYS[2..n] segments  string  rw  units left in each; the same keys in the same order as when it was taken
-- ARGV[1]    keep      int     ms  1..31622400000
-- RETURNS {1, replayed, parts...}  given back; segment and units
-- RETURNS {-2, segment}            this segment is not there; nothing was given back
-- RETURNS {-5, 0}                  nothing is remembered of this order
-- ERRORS BADARG CORRUPT OVERFLOW
-- @include numbers
-- @include segments
local order, segments = KEYS[1], KEYS
local keep = ARGV[1]

local count = #segments - 1
local err = apart(segments, count + 1)
if err then return err end
local kept
kept, err = argument('keep', keep, 1, 31622400000)
if not kept then return err end
local state, quantity, parts = parts_at(order)
if state == nil then return quantity end
if not state then return { -5, 0 } end
local reply = { 1, state == 'back' and 1 or 0 }
for i = 1, #parts, 2 do
  local segment, taken = parts[i], parts[i + 1]
  if segment < 1 or segment > count then return { -2, segment } end
  table.insert(reply, segment)
  table.insert(reply, taken)
  if state == 'done' then
    local left
    left, err = stored(segments[segment + 1])
    if err then return err end
    if not left then return { -2, segment } end
    if left > 9007199254740991 - taken then
      return redis.error_reply('OVERFLOW ' .. shown(segments[segment + 1]) .. ' would pass 9007199254740991')
    end
  end
end
if state == 'back' then return reply end
for i = 1, #parts, 2 do redis.call('INCRBY', segments[parts[i] + 1], string.format('%.0f', parts[i + 1])) end
remember_parts(order, 'back', quantity, parts, keep)
return reply
