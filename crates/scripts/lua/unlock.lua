#!lua flags=allow-oom
-- unlock: release a lock, if it is still this owner's
-- KEYS[1] lock   string  rw  the owner's token
-- ARGV[1] owner  text    -   1..512 bytes
-- RETURNS 1  released
-- RETURNS 0  not held by this owner; nothing was changed
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include text
local lock, owner = KEYS[1], ARGV[1]

local who, err = text_argument('owner', owner)
if not who then return err end
local holder = redis.pcall('GET', lock)
if type(holder) == 'table' then return corrupt(lock, holder) end
if holder ~= who then return 0 end
return redis.call('DEL', lock)
