#!lua
-- open: take commands from now on, if exactly so many chunks are in and no reservation of them is missing
-- KEYS[1] meta          hash  rw  the shard's meta
-- KEYS[2] reservations  hash  r   the epoch's reservations
-- ARGV[1] epoch         int   -   1..9007199254740991
-- ARGV[2] chunks        int   -   0..9007199254740991
-- RETURNS open   it is open
-- RETURNS other  another number of chunks or of reservations, or no base
-- RETURNS {no_meta} or {damaged} or {epoch, found}  the shard is another one
-- ERRORS BADARG
-- @include meta
local meta_key, reservations = KEYS[1], KEYS[2]
local epoch, chunks, err
epoch, err = argument('epoch', ARGV[1])
if not epoch then return err end
chunks, err = argument('chunks', ARGV[2])
if not chunks then return err end

local meta = meta_at(meta_key)
local no = stale(meta, epoch, false)
if no then return no end
if meta.chunks ~= chunks or not meta.base_seq then return 'other' end
if meta.open == 1 then return 'open' end
local held = redis.pcall('HLEN', reservations)
if held ~= meta.count then return 'other' end
redis.call('HSET', meta_key, 'open', '1')
return 'open'
