#!lua flags=allow-oom
-- extend: give a lock a new time from now on, if it is still this owner's
-- KEYS[1] lock   string  rw  the owner's token
-- ARGV[1] owner  text    -   1..512 bytes
-- ARGV[2] ttl    int     ms  1..31622400000
-- RETURNS 1  extended
-- RETURNS 0  not held by this owner; nothing was changed
-- ERRORS BADARG CORRUPT
-- @include numbers
-- @include text
local lock = KEYS[1]
local owner, ttl = ARGV[1], ARGV[2]

local who, err = text_argument('owner', owner)
if not who then return err end
local lasts
lasts, err = argument('ttl', ttl, 1, 31622400000)
if not lasts then return err end
local holder = redis.pcall('GET', lock)
if type(holder) == 'table' then return corrupt(lock, holder) end
if holder ~= who then return 0 end
return redis.call('PEXPIRE', lock, ttl)
