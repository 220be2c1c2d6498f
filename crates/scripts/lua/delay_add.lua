#!lua
-- delay_add: put an item into a delay queue; an item that is there already stays as it is
-- KEYS[1] due      zset  rw  when each item is to be handed out
-- KEYS[2] items    hash  rw  the items' payloads
-- ARGV[1] id       text  -   1..512 bytes
-- ARGV[2] at       int   ms  0..9007199254740991; since the epoch
-- ARGV[3] payload  blob  -   any bytes
-- RETURNS 1  added
-- RETURNS 0  an item with this id is there; nothing was changed
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include text
-- @include queue
local due, items = KEYS[1], KEYS[2]
local id, at, payload = ARGV[1], ARGV[2], ARGV[3]

local err = apart({ due, items }, 2)
if err then return err end
local item
item, err = text_argument('id', id)
if not item then return err end
local moment
moment, err = argument('at', at, 0, 9007199254740991)
if not moment then return err end
if not payload then return bad_argument('payload', payload, 'given') end
err = wrong_type(due, 'zset') or wrong_type(items, 'hash')
if err then return err end
if redis.call('HSETNX', items, item, payload) == 0 then return 0 end
redis.call('ZADD', due, at, item)
return 1
