#!lua
-- interval_limit: at most so many calls in an interval that begins with the first one
-- KEYS[1] calls     hash  rw     when the interval began and how many calls it has seen
-- ARGV[1] limit     int   count  1..9007199254740991
-- ARGV[2] interval  int   ms     1..31622400000
-- ARGV[3] now?      int   ms     1..9007199254740991; 0 or nothing is the server's clock
-- RETURNS {1, remaining, 0}  allowed; so many more are, in this interval
-- RETURNS {0, 0, retry}      refused, at no cost; allowed again in so many ms
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include clock
-- @include limits
local calls = KEYS[1]
local limit, interval, at = ARGV[1], ARGV[2], ARGV[3]

local most, err = argument('limit', limit, 1, 9007199254740991)
if not most then return err end
local length, now, began, count
length, err = argument('interval', interval, 1, 31622400000)
if not length then return err end
now, err = clock(at)
if not now then return err end
began, err = field(calls, 'began')
if err then return err end
count, err = field(calls, 'count')
if err then return err end
-- A count without a beginning is half a record: counted anew, since it would never run out.
if not began then began, count = now, 0 end
count = count or 0
local passed, from = since(began, now, length)
if passed >= length then from, count = now, 0 end
-- From here to the end of the interval.
local rest = from + length - now
local allowed = count < most
if allowed then count = count + 1 end
-- A refusal changes nothing, unless the interval began in a future that a wrong clock made up.
if allowed or from ~= began then
  redis.call('HSET', calls, 'began', string.format('%.0f', from), 'count', string.format('%.0f', count))
  redis.call('PEXPIRE', calls, string.format('%.0f', rest + 1000))
end
if allowed then return { 1, most - count, 0 } end
return { 0, 0, rest }
