#!lua
-- warm: set stocks that are not there yet and leave the others alone
-- KEYS[1..n] stocks  string  rw     units left; 1..1000 keys
-- ARGV[1..n] units   int     units  0..9007199254740991
-- RETURNS {n, flags...}  how many were set; for each key 1 when it was set, 0 when it was there
-- ERRORS BADARG
-- @include numbers
local stocks, units = KEYS, ARGV

local count = #stocks
if count < 1 or count > 1000 or #units ~= count then
  return bad_argument('keys', string.format('%d keys, %d values', count, #units), '1..1000, with a value each')
end
for i = 1, count do
  local number, err = argument(string.format('units[%d]', i), units[i], 0, 9007199254740991)
  if not number then return err end
end
local reply = { 0 }
for i = 1, count do
  local set = redis.call('SETNX', stocks[i], units[i])
  reply[1] = reply[1] + set
  reply[i + 1] = set
end
return reply
