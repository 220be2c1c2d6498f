#!lua flags=allow-oom
-- show: reservations and SKUs as they stand, a batch of them; what is past its end is ended first
-- KEYS[1] meta          hash    rw  the shard: epoch, open, tip, clock, counts
-- KEYS[2] reservations  hash    rw  every reservation that is held
-- KEYS[3] returns       hash    rw  every return that is held
-- KEYS[4] commands      hash    rw  every stock command that is held
-- KEYS[5] ends          zset    rw  seconds with ends; their lists are end:SECOND beside it
-- KEYS[6] usage         hash    rw  owner usage of tracked SKUs
-- KEYS[7] markers       hash    rw  SKUs that are being loaded or that nobody knows
-- KEYS[8] ended         list    rw  what may be forgotten, oldest first
-- KEYS[9] outbox        stream  rw  entries; SKUs are hashes sku:NAME beside it
-- ARGV[1] epoch   int   -   1..9007199254740991, as the ledger has it
-- ARGV[2] tag     text  -   16 hex digits, new for every send
-- ARGV[3] now     int   ms  0..9007199254740991; nothing is the clock of the server
-- ARGV[4] shapes  text  -   what is asked for, MessagePack: a list of maps
-- ARGV[5..n] commands  text  -  of each: name of a reservation or SKU, number of its shape
-- RETURNS {done, epoch, seq, tag, clock, wrote, replies...}  the tip after it; whether an entry was made
-- RETURNS {no_meta} or {damaged} or {epoch, found} or {closed, found}  the shard is another one
local argv = ARGV
local EPOCH, TAG, NOW = argv[1], argv[2], argv[3]
local OPEN = '1'
-- @include start
-- @include shapes
-- @include light
-- @include skus
-- @include holds
-- @include due
local FIRST, WIDTH = 5, 2

local function show(name, shape)
  if not shape.stock then
    local hold = find_hold(name, shape.known, shape.unknown_at)
    if not hold then stop('not_found') end
    return shown(hold)
  end
  local sku = sku_of(name)
  if not sku then
    if is_absent(name, shape.absent) then stop('unknown_sku') end
    stop('missing', name)
  end
  free_all_due()
  return { 'stock', 'ok', '', unpack(fields_of(sku)) }
end

local names = {}
for i = FIRST, #argv, WIDTH do
  if not shapes[tonumber(argv[i + 1])].stock then names[#names + 1] = argv[i] end
end
fetch(names)
local replies, number = {}, 0
for i = FIRST, #argv, WIDTH do
  number = number + 1
  replies[number] = guarded(show, argv[i], shapes[tonumber(argv[i + 1])])
end
-- @include commit
