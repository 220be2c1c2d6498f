#!lua flags=allow-oom
-- delay_ack: an item is done, said by the worker whose claim it is
-- KEYS[1] due      zset  rw     when each item is to be handed out
-- KEYS[2] items    hash  rw     the items' payloads
-- KEYS[3] tries    hash  rw     how often each item was handed out
-- ARGV[1] id       text  -      1..512 bytes
-- ARGV[2] attempt  int   count  1..1000000
-- RETURNS 1  done and removed
-- RETURNS 0  not this claim's any more: acknowledged before, or handed out again; nothing was changed
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include text
-- @include queue
local due, items, tries = KEYS[1], KEYS[2], KEYS[3]
local id, attempt = ARGV[1], ARGV[2]

local err = apart({ due, items, tries }, 3)
if err then return err end
local item
item, err = text_argument('id', id)
if not item then return err end
local count, mine
count, err = argument('attempt', attempt, 1, 1000000)
if not count then return err end
err = wrong_type(due, 'zset')
if err then return err end
mine, err = in_hands(items, tries, item, attempt)
if err then return err end
if not mine then return 0 end
redis.call('ZREM', due, item)
redis.call('HDEL', items, item)
redis.call('HDEL', tries, item)
return 1
