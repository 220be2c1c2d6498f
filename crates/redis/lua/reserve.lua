#!lua
-- reserve: reserve and deduct, a batch of them: every check before the first write, all lines of each or none
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
-- ARGV[5..n] commands  text  -  of each: name, owner, digest, number of its shape
-- RETURNS {done, epoch, seq, tag, clock, wrote, replies...}  the tip after it; whether an entry was made
-- RETURNS {no_meta} or {damaged} or {epoch, found} or {closed, found}  the shard is another one
local argv = ARGV
local EPOCH, TAG, NOW = argv[1], argv[2], argv[3]
local OPEN = '1'
-- @include start
-- @include light
-- @include shapes
local FIRST, WIDTH = 5, 4

local function long_way()
-- @include skus
-- @include holds
-- @include due
-- @include plan
-- @include seal

-- The reservation to supersede, if it allows that: 'pending', 'absent' or nothing; and the reservation.
local function superseded(shape, owner)
  local old = find_hold(shape.old, shape.known)
  if not old then return 'absent' end
  -- A sealed id has no owner and nothing to give up.
  if not old.sealed and old.owner ~= owner then stop('not_found', shape.old) end
  if old.status == 'p' then return 'pending', old end
  if old.status == 'c' then stop('already_confirmed', shown(old), old.name) end
end

local function reserve(name, owner, digest, shape)
  local lost = find_hold(name, shape.known, shape.unknown_at)
  if lost then
    local status, same = lost.status, lost.digest == digest
    if status == 'x' and (same or lost.sealed) then stop('already_cancelled', shown(lost)) end
    if not same then stop('id_reused') end
    if status == 'p' or status == 'c' then stop('replayed', shown(lost)) end
    if status == 'e' then stop('expired', shown(lost), 'over') end
  end
  if shape.invalid then stop('invalid') end
  local kind, old
  if shape.old then kind, old = superseded(shape, owner) end
  local asks = check_sale(shape)
  local freed_lines = kind == 'pending' and bound_lines(old) or {}
  local lines = plan(owner, asks, freed_lines)
  if kind == 'pending' then
    -- Meanwhile it may have been stored anew, but it is still pending: its end is not due.
    release(old)
    old.status = 'x'
    turn(old, 'X', 'p', shape.actor, shape.reason)
  elseif kind == 'absent' then
    seal(shape.old, shape.actor, shape.reason)
  end
  local sold = shape.mode == 1
  local new = {
    name = name, status = sold and 'c' or 'p', mode = shape.mode, sealed = false, digest = digest, owner = owner,
    ends = sold and clock or clock + shape.ttl, lines = lines,
  }
  if sold then
    for _, line in ipairs(lines) do confirm_line(line, MAX) end
  end
  return grant(lost, new, sold and 'D' or 'R', shape.actor)
end

return reserve
end

local names, named = {}, 0
for i = FIRST, #argv, WIDTH do
  named = named + 1
  names[named] = argv[i]
end
fetch(names)

-- What can be said of every plain command of a shape is worked out once.
local function look_at(shape)
  shape.looked = true
  local line = shape.lines[1]
  if shape.invalid or shape.old or #shape.lines ~= 1 or line[3] or line[5] or find(line[1], '\31', 1, true) then return end
  local place = plain_of(line[1])
  if not place then return end
  local sold = shape.mode == 1
  shape.place, shape.quantity = place, line[2]
  shape.before = sold and 'cA' or 'p@'
  shape.middle = AT .. '\31' .. (sold and AT or fmt('%.0f', clock + shape.ttl)) .. '\31' .. (sold and SEQ or '') .. '\31'
  shape.after = '\31' .. line[1] .. '\31' .. fmt('%.0f', line[2])
  shape.head = (sold and 'D-' or 'R-') .. shape.actor .. '\31'
  if sold then
    shape.bucket = ended.r
  else
    local second = second_of(clock + shape.ttl)
    shape.bucket = buckets[second] or {}
    buckets[second] = shape.bucket
  end
end

local replies, number, reserve = {}, 0, nil
for i = FIRST, #argv, WIDTH do
  number = number + 1
  local name, shape = argv[i], shapes[tonumber(argv[i + 3])]
  if not shape.looked then look_at(shape) end
  local place, reply = shape.place, nil
  -- A SKU that went the long way may not be plain any more, and whoever has forgotten ids has to look first.
  if place and not place.sku and not holds[name]
    and (forgot == 0 or (shape.unknown_at and shape.unknown_at >= forgot)) then
    local quantity = shape.quantity
    if place.on_hand - place.reserved - place.safety >= quantity then
      reply = shape.before .. argv[i + 2] .. shape.middle .. argv[i + 1] .. shape.after
      if not place.touched then touch(place) end
      if shape.mode == 1 then
        place.on_hand, place.sold = place.on_hand - quantity, place.sold + quantity
      else
        place.reserved = place.reserved + quantity
        live = live + 1
      end
      place.version = place.version + 1
      count = count + 1
      local bucket = shape.bucket
      bucket[#bucket + 1] = name
      holds[name] = reply
      hset[hset_count + 1], hset[hset_count + 2] = name, reply
      hset_count = hset_count + 2
      effects[effect_count + 1], effects[effect_count + 2], effects[effect_count + 3] = shape.head, name, reply
      effect_count = effect_count + 3
    end
  end
  if not reply then
    reserve = reserve or long_way()
    reply = guarded(reserve, name, argv[i + 1], argv[i + 2], shape)
  end
  replies[number] = reply
end
-- @include commit
