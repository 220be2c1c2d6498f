#!lua
-- mark: set a load marker for a SKU that is not held, with the tip that was seen, or find the one that is there
-- KEYS[1] meta          hash  r   the shard's meta
-- KEYS[2] reservations  hash  r   the epoch's reservations
-- KEYS[3] sku           hash  rw  the SKU
-- KEYS[4] markers       hash  rw  load markers
-- ARGV[1] epoch         int   -   1..9007199254740991
-- ARGV[2] name          text  -   the SKU with its tenant
-- ARGV[3] token         text  -   16 hex digits, random
-- ARGV[4] damaged       int   -   1: what is held of it is damaged, and goes; else 0
-- RETURNS {done, epoch, seq, tag, clock, held}                               the SKU is held
-- RETURNS {done, epoch, seq, tag, clock, loading, token, epoch, seq, tag}    the marker, the tip it saw
-- RETURNS {done, epoch, seq, tag, clock, absent, token}                      the ledger did not know it
-- RETURNS {no_meta} or {damaged} or {epoch, found} or {closed, found}        the shard is another one
-- ERRORS BADARG
-- @include meta
local meta_key, reservations, sku, markers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local name, token = ARGV[2], ARGV[3]
local epoch, damaged, err
epoch, err = argument('epoch', ARGV[1])
if not epoch then return err end
damaged, err = argument('damaged', ARGV[4])
if not damaged then return err end

local meta = meta_at(meta_key)
local no = stale(meta, epoch, true) or miscounted(meta, reservations)
if no then return no end
local state, at_epoch, seq, tag, clock = done(meta)
local held = redis.call('TYPE', sku).ok == 'hash'
if held and damaged == 0 then return { state, at_epoch, seq, tag, clock, 'held' } end
local marker = redis.pcall('HGET', markers, name)
if type(marker) == 'table' then return { 'damaged' } end
if held then
  -- Nothing is decided on it from here on, so the ledger has all of it when this tip is recorded. A marker beside it is
  -- older than that.
  redis.call('UNLINK', sku)
  marker = false
end
if marker then
  local found, saw_epoch, saw_seq, saw_tag = string.match(marker, '^loading (%x+) (%d+) (%d+) (%x+)$')
  if found then
    return { state, at_epoch, seq, tag, clock, 'loading', found, tonumber(saw_epoch), tonumber(saw_seq), saw_tag }
  end
  found = string.match(marker, '^absent (%x+) %d+$')
  if found then return { state, at_epoch, seq, tag, clock, 'absent', found } end
end
redis.call('HSET', markers, name, 'loading ' .. token .. ' ' .. digits(epoch) .. ' ' .. digits(seq) .. ' ' .. tag)
return { state, at_epoch, seq, tag, clock, 'loading', token, epoch, seq, tag }
