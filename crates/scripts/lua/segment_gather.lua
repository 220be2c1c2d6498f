#!lua
-- segment_gather: take units from as many segments as it needs, once per order, beginning at the caller's own
-- KEYS[1]    order     string  rw     what is remembered of this order
-- KEYS[2..n] segments  string  rw     units left in each; 1..1000 different keys
-- ARGV[1]    quantity  int     units  1..9007199254740991
-- ARGV[2]    caller    text    -      1..512 bytes; its hash names the first segment
-- ARGV[3]    keep      int     ms     1..31622400000
-- RETURNS {1, replayed, parts...}  done; segment and units taken from it, segments counted from 1
-- RETURNS {-1, sum}                all together have fewer than asked; nothing was taken
-- RETURNS {-2, segment}            this segment is not there
-- RETURNS {-4, 0}                  this order was for another quantity
-- RETURNS {-6, 0}                  this order was given back
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include text
-- @include segments
local order, segments = KEYS[1], KEYS
local quantity, caller, keep = ARGV[1], ARGV[2], ARGV[3]

local count = #segments - 1
if count < 1 or count > 1000 then return bad_argument('segments', tostring(count), '1..1000 keys') end
local err = apart(segments, count + 1)
if err then return err end
local asked
asked, err = argument('quantity', quantity, 1, 9007199254740991)
if not asked then return err end
local who, kept
who, err = text_argument('caller', caller)
if not who then return err end
kept, err = argument('keep', keep, 1, 31622400000)
if not kept then return err end
local state, before, parts = parts_at(order)
if state == nil then return before end
if state then return parts_reply(state, before, parts, asked) end
local counts, sum = segment_counts(segments)
if not counts then return sum end
if sum < asked then return { -1, sum } end
local start, missing = start_segment(who, count), asked
local reply = { 1, 0 }
parts = {}
for step = 0, count - 1 do
  local segment = (start + step - 1) % count + 1
  local taken = math.min(counts[segment], missing)
  if taken > 0 then
    redis.call('DECRBY', segments[segment + 1], string.format('%.0f', taken))
    missing = missing - taken
    for _, list in ipairs({ parts, reply }) do
      table.insert(list, segment)
      table.insert(list, taken)
    end
  end
end
remember_parts(order, 'done', asked, parts, keep)
return reply
