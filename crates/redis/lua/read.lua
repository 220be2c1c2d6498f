#!lua flags=allow-oom
-- read: entries of the outbox from a number on, inclusive; the base that trimming kept is told beside them
-- KEYS[1] meta    hash    r  the shard's meta
-- KEYS[2] outbox  stream  r  the epoch's entries that are not trimmed
-- ARGV[1] epoch   int     -  1..9007199254740991
-- ARGV[2] from    int     -  0..9007199254740991
-- ARGV[3] count   int     -  1..100000; the most entries in this reply
-- RETURNS {done, epoch, seq, tag, clock, base_seq, base_tag, entries}  entries as XRANGE has them
-- RETURNS {no_meta} or {damaged} or {epoch, found} or {closed, found}  the shard is another one, or has no base yet
-- ERRORS BADARG
-- @include meta
local meta_key, outbox = KEYS[1], KEYS[2]
local epoch, from, count, err
epoch, err = argument('epoch', ARGV[1])
if not epoch then return err end
from, err = argument('from', ARGV[2])
if not from then return err end
count, err = argument('count', ARGV[3])
if not count then return err end

local meta = meta_at(meta_key)
local no = stale(meta, epoch, false)
if no then return no end
if not meta.base_seq then return { 'closed', meta.epoch } end
local entries = redis.pcall('XRANGE', outbox, digits(epoch) .. '-' .. digits(from), digits(epoch), 'COUNT',
  digits(count))
if entries.err then return { 'damaged' } end
local state, at_epoch, seq, tag, clock = done(meta)
return { state, at_epoch, seq, tag, clock, meta.base_seq, meta.base_tag, entries }
