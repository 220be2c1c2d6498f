#!lua
-- chunk: load a part of the ledger's state into a fenced epoch, only when exactly the parts before it are in
-- KEYS[1] meta          hash  rw  the shard's meta; TAG:EPOCH:end:SECOND is built from its tag
-- KEYS[2] reservations  hash  rw  the epoch's reservations
-- KEYS[3] ends          zset  rw  seconds that have a bucket
-- KEYS[4] usage         hash  rw  owner usage
-- KEYS[5..n] skus       hash  w   the SKUs of this chunk
-- ARGV[1] epoch         int   -   1..9007199254740991
-- ARGV[2] number        int   -   1..9007199254740991; of this chunk
-- ARGV[3] live          int   -   0..1000000; reservations
-- ARGV[4] usages        int   -   0..1000000; rows of owner usage
-- ARGV[5..n] values     text  -   per reservation name, packed; then its second; per usage and per SKU (after how many) field, value
-- RETURNS taken  it is in, now or since the same chunk was sent before
-- RETURNS other  another chunk is next, or what it brings is there already
-- RETURNS {no_meta} or {damaged} or {epoch, found}  the shard is another one
-- ERRORS BADARG
-- @include meta
local keys, args = KEYS, ARGV
local meta_key, reservations, ends, usage = keys[1], keys[2], keys[3], keys[4]
local epoch, number, live, usages, err
epoch, err = argument('epoch', args[1])
if not epoch then return err end
number, err = argument('number', args[2])
if not number then return err end
live, err = argument('live', args[3])
if not live then return err end
usages, err = argument('usages', args[4])
if not usages then return err end

local meta = meta_at(meta_key)
local no = stale(meta, epoch, false)
if no then return no end
if not meta.base_seq or number == 0 then return 'other' end
-- The reply to this very chunk was lost: it is in.
if meta.chunks == number then return 'taken' end
if meta.open ~= 0 or meta.chunks ~= number - 1 then return 'other' end
if not (is_hash(reservations) and is_hash(usage) and is_type(ends, 'zset')) then return { 'damaged' } end
for i = 5, #keys do
  if redis.call('EXISTS', keys[i]) == 1 then return 'other' end
end

local of_epoch = string.match(meta_key, '^(.*):meta$') .. ':' .. digits(epoch)
local buckets, seconds = {}, {}
local at = 5 + 2 * live
for i = 0, live - 1 do
  local second = args[at + i]
  local bucket = buckets[second]
  if not bucket then
    bucket = {}
    buckets[second] = bucket
    seconds[#seconds + 1] = second
    seconds[#seconds + 1] = second
  end
  bucket[#bucket + 1] = args[5 + 2 * i]
end
put_all('HSET', reservations, args, 5, at - 1)
at = at + live
for second, names in pairs(buckets) do
  put_all('RPUSH', of_epoch .. ':end:' .. second, names, 1, #names)
end
put_all('ZADD', ends, seconds, 1, #seconds)
put_all('HSET', usage, args, at, at + 2 * usages - 1)
at = at + 2 * usages
for i = 5, #keys do
  local count = tonumber(args[at])
  put_all('HSET', keys[i], args, at + 1, at + 2 * count)
  at = at + 1 + 2 * count
end
redis.call('HSET', meta_key, 'chunks', digits(number), 'count', digits(meta.count + live), 'live',
  digits(meta.live + live))
return 'taken'
