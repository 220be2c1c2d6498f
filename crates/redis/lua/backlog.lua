#!lua flags=allow-oom
-- backlog: how many entries are not trimmed, and about how much memory they take
-- KEYS[1] meta    hash    r  the shard's meta
-- KEYS[2] outbox  stream  r  the epoch's entries that are not trimmed
-- ARGV[1] epoch   int     -  1..9007199254740991
-- RETURNS {done, epoch, seq, tag, clock, entries, bytes}  the tip and the outbox
-- RETURNS {no_meta} or {damaged} or {epoch, found}  the shard is another one
-- ERRORS BADARG
-- @include meta
local meta_key, outbox = KEYS[1], KEYS[2]
local epoch, err = argument('epoch', ARGV[1])
if not epoch then return err end

local meta = meta_at(meta_key)
local no = stale(meta, epoch, false)
if no then return no end
local entries = redis.pcall('XLEN', outbox)
if type(entries) ~= 'number' then return { 'damaged' } end
local bytes = redis.call('MEMORY', 'USAGE', outbox) or 0
local state, at_epoch, seq, tag, clock = done(meta)
return { state, at_epoch, seq, tag, clock, entries, bytes }
