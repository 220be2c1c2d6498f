#!lua
-- segment_init: spread a stock evenly over segments that do not exist yet
-- KEYS[1..n] segments  string  rw     units left in each; 1..1000 different keys
-- ARGV[1]    total     int     units  0..9007199254740991
-- RETURNS 1  done; the first (total modulo n) segments have one unit more
-- RETURNS 0  at least one segment is there already; nothing was set
-- ERRORS BADARG
-- @include numbers
local segments, total = KEYS, ARGV[1]

local count = #segments
local seen = {}
for i = 1, count do
  if seen[segments[i]] then return bad_argument('segments', segments[i], 'different keys') end
  seen[segments[i]] = true
end
if count < 1 or count > 1000 then return bad_argument('segments', tostring(count), '1..1000 keys') end
local units, err = argument('total', total, 0, 9007199254740991)
if not units then return err end
for i = 1, count do
  if redis.call('EXISTS', segments[i]) == 1 then return 0 end
end
local rest = units % count
local share = (units - rest) / count
for i = 1, count do
  redis.call('SET', segments[i], string.format('%.0f', i <= rest and share + 1 or share))
end
return 1
