#!lua
-- delay_claim: take items whose time has come; those not acknowledged in time are handed out again, at most so often
-- KEYS[1] due         zset  rw     when each item is to be handed out
-- KEYS[2] items       hash  rw     the items' payloads
-- KEYS[3] tries       hash  rw     how often each item was handed out
-- KEYS[4] dead        hash  rw     payloads of items that were handed out too often
-- ARGV[1] limit       int   count  1..1000
-- ARGV[2] visibility  int   ms     1..31622400000
-- ARGV[3] tries_max   int   count  1..1000000
-- ARGV[4] now?        int   ms     1..9007199254740991; 0 or nothing is the server's clock
-- RETURNS {n, dead, claims...}   ms until the next item is due, 0 or more; items given up now; id, payload, attempt each
-- RETURNS {-1, dead, claims...}  the same, and nothing is waiting any more
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include clock
-- @include queue
local due, items, tries, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local limit, visibility, tries_max, at = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local err = apart({ due, items, tries, dead }, 4)
if err then return err end
local most
most, err = argument('limit', limit, 1, 1000)
if not most then return err end
local hidden, often, now
hidden, err = argument('visibility', visibility, 1, 31622400000)
if not hidden then return err end
often, err = argument('tries_max', tries_max, 1, 1000000)
if not often then return err end
now, err = clock(at)
if not now then return err end
err = wrong_type(due, 'zset') or wrong_type(items, 'hash') or wrong_type(tries, 'hash') or wrong_type(dead, 'hash')
if err then return err end
local reply = { -1, 0 }
local again = string.format('%.0f', now + hidden)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', string.format('%.0f', now), 'LIMIT', 0, most)) do
  local payload, before = redis.call('HGET', items, id), redis.call('HGET', tries, id)
  -- A count that somebody broke must not hold up the others: it counts as used up.
  local count = before and (whole(before) or often) or 0
  if not payload then
    redis.call('ZREM', due, id)
    redis.call('HDEL', tries, id)
  elseif count >= often then
    redis.call('HSET', dead, id, payload)
    redis.call('ZREM', due, id)
    redis.call('HDEL', items, id)
    redis.call('HDEL', tries, id)
    reply[2] = reply[2] + 1
  else
    redis.call('HSET', tries, id, string.format('%.0f', count + 1))
    redis.call('ZADD', due, again, id)
    table.insert(reply, id)
    table.insert(reply, payload)
    table.insert(reply, count + 1)
  end
end
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
if first[2] then reply[1] = math.max(0, math.min(9007199254740991, tonumber(first[2]) - now)) end
return reply
