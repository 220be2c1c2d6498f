#!lua flags=allow-oom
-- cancel: reserved units go back, a batch of them; an id that never came is sealed
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
-- ARGV[5..n] commands  text  -  of each: name, number of its shape
-- RETURNS {done, epoch, seq, tag, clock, wrote, replies...}  the tip after it; whether an entry was made
-- RETURNS {no_meta} or {damaged} or {epoch, found} or {closed, found}  the shard is another one
local argv = ARGV
local EPOCH, TAG, NOW = argv[1], argv[2], argv[3]
local OPEN = '1'
-- @include start
-- @include light
-- @include shapes
local FIRST, WIDTH = 5, 2

local function long_way()
-- @include skus
-- @include holds
-- @include due
-- @include seal

local function cancel(name, shape)
  local hold = find_hold(name, shape.known, shape.unknown_at)
  if not hold then return { 'sealed', seal(name, shape.actor, shape.reason) } end
  local before = hold.status
  if before == 'x' then stop('replayed', shown(hold)) end
  if before == 'c' then stop('already_confirmed', shown(hold)) end
  -- Of one that is over, the units went back when it ended.
  if before == 'p' then release(hold) end
  hold.status = 'x'
  return turn(hold, 'X', before, shape.actor, shape.reason)
end
return cancel
end

local names, named = {}, 0
for i = FIRST, #argv, WIDTH do
  named = named + 1
  names[named] = argv[i]
end
fetch(names)
local replies, number, cancel = {}, 0, nil
for i = FIRST, #argv, WIDTH do
  number = number + 1
  local name, shape = argv[i], shapes[tonumber(argv[i + 1])]
  local packed = holds[name]
  shape.head = shape.head or 'Xp' .. shape.actor .. '\31' .. shape.reason
  local reply = packed and plain_turn(name, packed, 'x', shape.head)
  if not reply then
    cancel = cancel or long_way()
    reply = guarded(cancel, name, shape)
  end
  replies[number] = reply
end
-- @include commit
