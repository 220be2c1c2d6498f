#!lua
-- delay_retry: a worker gives an item back, to be handed out again later, or gives it up when it was tried often enough
-- KEYS[1] due        zset  rw     when each item is to be handed out
-- KEYS[2] items      hash  rw     the items' payloads
-- KEYS[3] tries      hash  rw     how often each item was handed out
-- KEYS[4] dead       hash  rw     payloads of items that were handed out too often
-- ARGV[1] id         text  -      1..512 bytes
-- ARGV[2] attempt    int   count  1..1000000
-- ARGV[3] delay      int   ms     0..31622400000
-- ARGV[4] tries_max  int   count  1..1000000
-- ARGV[5] now?       int   ms     1..9007199254740991; 0 or nothing is the server's clock
-- RETURNS 1  waits again
-- RETURNS 2  given up: it is with the dead letters
-- RETURNS 0  not this claim's any more; nothing was changed
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include text
-- @include clock
-- @include queue
local due, items, tries, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, attempt, delay, tries_max, at = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local err = apart({ due, items, tries, dead }, 4)
if err then return err end
local item
item, err = text_argument('id', id)
if not item then return err end
local count, waits, often, now, mine
count, err = argument('attempt', attempt, 1, 1000000)
if not count then return err end
waits, err = argument('delay', delay, 0, 31622400000)
if not waits then return err end
often, err = argument('tries_max', tries_max, 1, 1000000)
if not often then return err end
now, err = clock(at)
if not now then return err end
err = wrong_type(due, 'zset') or wrong_type(dead, 'hash')
if err then return err end
mine, err = in_hands(items, tries, item, attempt)
if err then return err end
if not mine then return 0 end
if count >= often then
  redis.call('HSET', dead, item, redis.call('HGET', items, item))
  redis.call('ZREM', due, item)
  redis.call('HDEL', items, item)
  redis.call('HDEL', tries, item)
  return 2
end
redis.call('ZADD', due, string.format('%.0f', now + waits), item)
return 1
