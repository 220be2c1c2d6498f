#!lua flags=allow-oom
-- trim: remove entries up to one, which is kept as base; nothing happens unless that entry has that tag
-- KEYS[1] meta    hash    rw  the shard's meta
-- KEYS[2] outbox  stream  rw  the epoch's entries that are not trimmed
-- ARGV[1] epoch   int     -   1..9007199254740991
-- ARGV[2] seq     int     -   0..9007199254740991
-- ARGV[3] tag     text    -   16 hex digits
-- RETURNS trimmed  that entry is the base now
-- RETURNS other    no entry of that number has that tag here
-- RETURNS {no_meta} or {damaged} or {epoch, found}  the shard is another one
-- ERRORS BADARG
-- @include meta
local meta_key, outbox, tag = KEYS[1], KEYS[2], ARGV[3]
local epoch, seq, err
epoch, err = argument('epoch', ARGV[1])
if not epoch then return err end
seq, err = argument('seq', ARGV[2])
if not seq then return err end

local meta = meta_at(meta_key)
local no = stale(meta, epoch, false)
if no then return no end
if not meta.base_seq then return 'other' end
if seq == meta.base_seq and tag == meta.base_tag then return 'trimmed' end
if seq <= meta.base_seq then return 'other' end
local found = tag_at(outbox, epoch, seq)
if found == nil then return { 'damaged' } end
if found ~= tag then return 'other' end
redis.call('HSET', meta_key, 'base_seq', digits(seq), 'base_tag', tag)
redis.call('XTRIM', outbox, 'MINID', '=', digits(epoch) .. '-' .. digits(seq + 1))
return 'trimmed'
