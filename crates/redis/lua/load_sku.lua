#!lua
-- load_sku: take a SKU from the ledger under its marker, or let the marker say that the ledger does not know it
-- KEYS[1] meta          hash  r   the shard's meta
-- KEYS[2] reservations  hash  r   the epoch's reservations
-- KEYS[3] sku           hash  rw  the SKU
-- KEYS[4] markers       hash  rw  load markers
-- KEYS[5] usage         hash  w   owner usage
-- KEYS[6] outbox        stream  r   the epoch's entries that are not trimmed
-- ARGV[1] epoch         int   -   1..9007199254740991
-- ARGV[2] name          text  -   the SKU with its tenant
-- ARGV[3] token         text  -   16 hex digits; the marker's
-- ARGV[4] read_epoch    int   -   1..9007199254740991; where the ledger stood when the SKU was read
-- ARGV[5] read_seq      int   -   0..9007199254740991
-- ARGV[6] read_tag      text  -   16 hex digits
-- ARGV[7] fields        int   -   0..10000; how many fields the SKU has, 0: the ledger does not know it
-- ARGV[8..n] values     text  -   field and value of the SKU, so often; then field and value of owner usage
-- RETURNS {done, epoch, seq, tag, clock, loaded}  it is held now, or the marker says that it is not there
-- RETURNS {done, epoch, seq, tag, clock, gone}    that marker is gone, or the ledger stood where this node never was; nothing was changed
-- RETURNS {no_meta} or {damaged} or {epoch, found} or {closed, found}  the shard is another one
-- ERRORS BADARG
-- @include meta
local args = ARGV
local meta_key, reservations, sku, markers, usage, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local name, token = args[2], args[3]
local epoch, read_epoch, read_seq, count, err
epoch, err = argument('epoch', args[1])
if not epoch then return err end
read_epoch, err = argument('read_epoch', args[4])
if not read_epoch then return err end
read_seq, err = argument('read_seq', args[5])
if not read_seq then return err end
local read_tag = args[6]
count, err = argument('fields', args[7])
if not count then return err end

local meta = meta_at(meta_key)
local no = stale(meta, epoch, true) or miscounted(meta, reservations)
if no then return no end
local marker = redis.pcall('HGET', markers, name)
if type(marker) == 'table' or not is_hash(usage) then return { 'damaged' } end
local state, at_epoch, seq, tag, clock = done(meta)
local absent = 'absent ' .. token .. ' '
if not marker or (marker:sub(1, 25) ~= 'loading ' .. token .. ' ' and marker:sub(1, #absent) ~= absent) then
  return { state, at_epoch, seq, tag, clock, 'gone' }
end
-- What was read holds everything up to there. A node that lost some of that would count units that it does not know of.
local met = read_epoch == epoch and meta.base_seq
  and (read_seq < meta.base_seq or (read_seq == meta.base_seq and read_tag == meta.base_tag))
if read_epoch == epoch and not met then
  local found = tag_at(outbox, epoch, read_seq)
  if found == nil then return { 'damaged' } end
  met = found == read_tag
end
if not met then return { state, at_epoch, seq, tag, clock, 'gone' } end
if count == 0 then
  if marker:sub(1, #absent) ~= absent then redis.call('HSET', markers, name, absent .. digits(second(meta))) end
  return { state, at_epoch, seq, tag, clock, 'loaded' }
end
redis.call('HDEL', markers, name)
-- Whatever stands in its place was damaged; a SKU that is held has no marker.
redis.call('UNLINK', sku)
put_all('HSET', sku, args, 8, 7 + 2 * count)
put_all('HSET', usage, args, 8 + 2 * count, #args)
return { state, at_epoch, seq, tag, clock, 'loaded' }
