#!lua
-- lock: take a lock for a time, with a fencing number that only grows; the owner asking again keeps his number
-- KEYS[1] lock   string  rw  the owner's token
-- KEYS[2] fence  string  rw  the last fencing number; never expires
-- ARGV[1] owner  text    -   1..512 bytes; unique for each acquisition
-- ARGV[2] ttl    int     ms  1..31622400000
-- RETURNS {n, ttl}     held by this owner; its fencing number, 1 or more, and the time given
-- RETURNS {0, remains}  held by somebody else for so many ms; -1 when without end
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include text
local lock, fence = KEYS[1], KEYS[2]
local owner, ttl = ARGV[1], ARGV[2]

local err = apart({ lock, fence }, 2)
if err then return err end
local who
who, err = text_argument('owner', owner)
if not who then return err end
local lasts, number
lasts, err = argument('ttl', ttl, 1, 31622400000)
if not lasts then return err end
local holder = redis.pcall('GET', lock)
if type(holder) == 'table' then return corrupt(lock, holder) end
if holder and holder ~= who then return { 0, redis.call('PTTL', lock) } end
number, err = stored(fence)
if err then return err end
if number and (number < 0 or number >= 9007199254740991) then
  return corrupt(fence, string.format('%.0f', number))
end
if not holder or not number or number == 0 then number = redis.call('INCRBY', fence, '1') end
redis.call('SET', lock, who, 'PX', ttl)
return { number, lasts }
