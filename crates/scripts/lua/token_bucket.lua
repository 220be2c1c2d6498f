#!lua
-- token_bucket: a bucket that fills steadily; a call takes its cost or is refused at no cost
-- KEYS[1] bucket    hash  rw      what is in it, in fractions of a token, and since when
-- ARGV[1] capacity  int   tokens  1..1000000000
-- ARGV[2] refill    int   tokens  0..1000000000; so many come in each period, 0 is never
-- ARGV[3] period    int   ms      1..86400000
-- ARGV[4] cost      int   tokens  1..1000000000; no more than capacity
-- ARGV[5] now?      int   ms      1..9007199254740991; 0 or nothing is the server's clock
-- RETURNS {1, remaining, 0}      allowed; whole tokens left
-- RETURNS {0, remaining, retry}  refused, at no cost; there will be enough in so many ms, -1 is never
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include clock
-- @include limits
local bucket = KEYS[1]
local capacity, refill, period, cost, at = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local most, err = argument('capacity', capacity, 1, 1000000000)
if not most then return err end
local gain, length, price, now
gain, err = argument('refill', refill, 0, 1000000000)
if not gain then return err end
length, err = argument('period', period, 1, 86400000)
if not length then return err end
price, err = argument('cost', cost, 1, most)
if not price then return err end
now, err = clock(at)
if not now then return err end
-- A token is `length` parts, and each ms brings `gain` of them: all whole numbers, so that nothing is lost by rounding.
local full = most * length
if full > 9007199254740991 then
  return bad_argument('capacity', capacity, 'such that capacity * period is at most 9007199254740991')
end
local fill = gain > 0 and math.ceil(full / gain) or 0
if fill > 31622400000 then return bad_argument('refill', refill, 'enough to fill the bucket within 366 days') end

local level, unit, since_ms
level, err = field(bucket, 'level')
if err then return err end
unit, err = field(bucket, 'unit')
if err then return err end
since_ms, err = field(bucket, 'at')
if err then return err end
if not level then
  level, since_ms = full, now
elseif unit and unit ~= length then
  -- The period was configured differently when this was written.
  level = unit > 0 and math.floor(level / unit * length) or 0
end
local passed, from = since(since_ms or now, now, fill)
-- Compared before the product, which could leave the exact range.
if gain > 0 and passed >= fill then level = full else level = math.min(full, level + passed * gain) end
local moment = from + passed
local allowed = level >= price * length
if allowed then level = level - price * length end
-- A refusal changes nothing, unless the bucket was filled in a future that a wrong clock made up.
if allowed or from ~= since_ms then
  redis.call('HSET', bucket, 'level', string.format('%.0f', level), 'at', string.format('%.0f', moment), 'unit', period)
  if gain > 0 then
    -- Gone when it is full, and a second later, never before.
    redis.call('PEXPIRE', bucket, string.format('%.0f', math.ceil((full - level) / gain) + (moment - now) + 1000))
  else
    redis.call('PERSIST', bucket)
  end
end
local whole_tokens = math.floor(level / length)
if allowed then return { 1, whole_tokens, 0 } end
if gain == 0 then return { 0, whole_tokens, -1 } end
return { 0, whole_tokens, math.ceil((price * length - level) / gain) + (moment - now) }
