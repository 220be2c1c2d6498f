#!lua
-- rerun: during a rebuild: surviving grants, extends and cancels once more; a grant that no longer fits is lost
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
-- ARGV[4..n] changes  text  -  of each: R (grant), L (grant of one recorded as lost), E (extend) or X (cancel), name, packed
-- RETURNS {done, epoch, seq, tag, clock, wrote, replies...}  the tip after it; whether an entry was made
-- RETURNS {no_meta} or {damaged} or {epoch, found} or {closed, found}  the shard is another one
local argv = ARGV
local EPOCH, TAG, NOW = argv[1], argv[2], argv[3]
local OPEN = '0'
-- @include start
-- @include light
-- @include skus
-- @include holds
-- @include due
local FIRST, WIDTH = 4, 3

-- Grants of this call whose end has come; they are in no bucket yet.
local over = {}

-- Units of what has ended meanwhile are free for those behind it, as they were when those were granted. After a long
-- outage that may be everything that was live, so a call ends so many, and answers `again` when that is not enough.
local function free_ended()
  local number = 0
  for _, name in ipairs(over) do
    local hold = head_of(name, holds[name])
    if hold.status == 'p' and hold.ends <= clock then
      expire(hold)
      number = number + 1
    end
  end
  over = {}
  if number > 0 then return true end
  return free_due(FREED_MAX) > 0
end

-- Takes the units from where they were, or, where that is no longer possible, along the allocation order: without
-- window, revision or owner limit. Nothing when they are not there.
local function placed(lines)
  local left, out = {}, {}
  local function left_at(place)
    left[place] = left[place] or available(place)
    return left[place]
  end
  for i, line in ipairs(lines) do
    local sku = sku_of(line.name)
    if not sku then stop('missing', line.name) end
    line.sku, line.era = sku, sku.era
    local same = true
    for _, part in ipairs(line.parts) do
      part.place = sku.index[part.location]
      if not part.place or left_at(part.place) < part.quantity then same = false end
    end
    local parts = line.parts
    if not same then
      local wanted = sum_of(line, 'quantity')
      local places = line.asked ~= '' and { sku.index[line.asked] } or sku.order
      parts = {}
      for _, place in ipairs(places) do
        local units = math.min(wanted, left_at(place))
        if units > 0 then
          parts[#parts + 1] =
            { place = place, location = place.location, quantity = units, confirmed = 0, returned = 0 }
          wanted = wanted - units
        end
      end
      if wanted > 0 then return nil end
    end
    for _, part in ipairs(parts) do left[part.place] = left_at(part.place) - part.quantity end
    out[i] = parts
  end
  for i, line in ipairs(lines) do line.parts = out[i] end
  return true
end

local function reserve(name, packed, was_lost)
  local held = holds[name]
  -- It was recorded after all, or has been done again: what is there stands.
  if held and not (sub(held, 1, 1) == 'l' and sub(held, 3, 18) == sub(packed, 3, 18)) then return { 'ok' } end
  local hold = head_of(name, packed)
  local before = (held or was_lost) and 'l' or '-'
  local original = pack(hold)
  local shifts, uses = {}, {}
  local lines = lines_of(hold)
  local fits = placed(lines)
  while not fits and free_ended() do fits = placed(lines) end
  if fits then
    for _, line in ipairs(hold.lines) do
      local used = 0
      for _, part in ipairs(line.parts) do
        if part.quantity > 0 then shifts[#shifts + 1] = { part.place, 0, part.quantity, 0 } end
        used = used + part.quantity
      end
      uses[#uses + 1] = { line.sku, line.era, hold.owner, used }
    end
    carry(shifts, uses)
    turn(hold, 'R', before, 'stockade', '')
    if was_lost and not held then count = count + 1 end
    if hold.ends <= clock then over[#over + 1] = name end
    return { 'ok' }
  end
  if held then return { 'lost', held } end
  hold = head_of(name, original)
  hold.status, hold.seq = 'l', SEQ
  -- It is recorded as that already.
  if was_lost then return { 'lost', pack(hold) } end
  return { 'lost', turn(hold, 'L', before, 'stockade', '') }
end

local function extend(name, packed)
  local held = holds[name]
  if not held or sub(held, 1, 1) ~= 'p' or sub(held, 3, 18) ~= sub(packed, 3, 18) then return { 'ok' } end
  local hold, wanted = head_of(name, held), head_of(name, packed)
  if hold.ends ~= wanted.ends then
    hold.ends = wanted.ends
    turn(hold, 'E', 'p', 'stockade', '')
    if hold.ends <= clock then over[#over + 1] = name end
  end
  return { 'ok' }
end

local function cancel(name, packed)
  local held = holds[name]
  if not held or sub(held, 1, 1) ~= 'p' or sub(held, 3, 18) ~= sub(packed, 3, 18) then return { 'ok' } end
  local hold = head_of(name, held)
  release(hold)
  hold.status = 'x'
  turn(hold, 'X', 'p', 'stockade', '')
  return { 'ok' }
end

local run = {
  R = reserve,
  L = function(name, packed) return reserve(name, packed, true) end,
  E = extend,
  X = cancel,
}

local names = {}
for i = FIRST, #argv, WIDTH do names[#names + 1] = argv[i + 1] end
fetch(names)
local replies, number, full = {}, 0, false
for i = FIRST, #argv, WIDTH do
  number = number + 1
  -- Nobody overtakes one that waits for units of what has ended.
  local reply = full and { 'again' } or guarded(run[argv[i]], argv[i + 1], argv[i + 2])
  full = reply[1] == 'again'
  replies[number] = reply
end
-- @include commit
