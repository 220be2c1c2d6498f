#!lua flags=allow-oom
-- confirm: reserved units become sold ones, whole or in part, a batch of them; also in place of a reserve that was lost
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
-- @include plan
-- @include picks

local function confirm_pending(hold, shape)
  local picks = picked(hold, shape.picks, quantity_of, quantity_of)
  if not picks then stop('invalid', shown(hold)) end
  local shifts, uses = {}, {}
  local lines = bound_lines(hold)
  for i, line in ipairs(lines) do
    confirm_line(line, picks[i].units)
    for _, part in ipairs(line.parts) do
      if part.quantity > 0 then
        shifts[#shifts + 1] = { part.place, -part.confirmed, -part.quantity, part.confirmed }
      end
    end
    uses[#uses + 1] = { line.sku, line.era, hold.owner, sum_of(line, 'confirmed') - sum_of(line, 'quantity') }
  end
  carry(shifts, uses)
  hold.status = 'c'
  return turn(hold, 'C', 'p', shape.actor, '')
end

-- Confirmed before: the same lines are a replay.
local function compare(hold, shape)
  local picks = picked(hold, shape.picks, quantity_of, quantity_of)
  if not picks then stop('invalid', shown(hold)) end
  for i, line in ipairs(lines_of(hold)) do
    if sum_of(line, 'confirmed') ~= picks[i].units then stop('already_confirmed', shown(hold)) end
  end
  stop('replayed', shown(hold))
end

-- Why the units of a reservation that is over cannot be taken again: a word and rows of line, index and numbers.
local function obstacle(hold, picks)
  local over, short, taken = nil, nil, {}
  local lines = hold.lines
  local first = 1
  for last = 1, #lines do
    if last == #lines or lines[last + 1].sku ~= lines[first].sku then
      local sku, asked, earliest = lines[first].sku, 0, nil
      for i = first, last do
        local units = sum_of(lines[i], 'confirmed')
        asked = asked + units
        if units > 0 and (not earliest or picks[i].index < picks[earliest].index) then earliest = i end
      end
      if earliest and sku.limit then
        local used = used_of(sku, hold.owner)
        if used + asked > sku.limit then
          over = over or {}
          local n = #over
          over[n + 1], over[n + 2], over[n + 3], over[n + 4], over[n + 5] =
            earliest, picks[earliest].index, asked, used, sku.limit
        end
      end
      for i = first, earliest and last or 0 do
        local line, could, had = lines[i], 0, {}
        for k, part in ipairs(line.parts) do
          local there = math.max(0, available(part.place) - (taken[part.place] or 0))
          had[k] = math.min(there, part.confirmed)
          could = could + had[k]
          taken[part.place] = (taken[part.place] or 0) + had[k]
        end
        local units = sum_of(line, 'confirmed')
        if could < units then
          for k, part in ipairs(line.parts) do taken[part.place] = taken[part.place] - had[k] end
          short = short or {}
          local n = #short
          short[n + 1], short[n + 2], short[n + 3], short[n + 4] = i, picks[i].index, units, could
        end
      end
      first = last + 1
    end
  end
  if over then return 'limit', over end
  if short then return 'short', short end
end

-- The money came late. The units are taken again, from where they were, if they are there.
local function confirm_late(hold, shape)
  local before = hold.status
  local picks = picked(hold, shape.picks, quantity_of, quantity_of)
  if not picks then stop('invalid', shown(hold)) end
  local why, rows = 'over', {}
  local lines = lines_of(hold)
  if shape.late == 'revive' then
    bound_lines(hold)
    for i, line in ipairs(lines) do confirm_line(line, picks[i].units) end
    repeat
      why, rows = obstacle(hold, picks)
    until not why or free_due(STEP) == 0
  end
  if why then
    if not hold.noted then
      local noted = head_of(hold.name, holds[hold.name])
      noted.noted = true
      turn(noted, 'N', before, shape.actor, '')
    end
    stop('expired', shown(hold), why, unpack(rows))
  end
  local shifts, uses = {}, {}
  for _, line in ipairs(lines) do
    -- Counted anew, in the present era.
    line.era = line.sku.era
    for _, part in ipairs(line.parts) do
      if part.confirmed > 0 then shifts[#shifts + 1] = { part.place, -part.confirmed, 0, part.confirmed } end
    end
    uses[#uses + 1] = { line.sku, line.era, hold.owner, sum_of(line, 'confirmed') }
  end
  carry(shifts, uses)
  hold.status = 'c'
  return turn(hold, 'V', before, shape.actor, '')
end

-- The reserve never came; its payload did, with the confirm: both in one step.
local function confirm_unheard(name, shape)
  local payload = shape.payload
  if payload.invalid then stop('invalid') end
  local lines = plan(payload.owner, check_sale(payload), {})
  for i, line in ipairs(lines) do confirm_line(line, payload.units and payload.units[i] or MAX) end
  -- Recorded as the reserve that it stands in for, so that the lost one is a replay when it turns up.
  local new = {
    name = name, status = 'c', mode = 0, sealed = false, digest = payload.reserve_digest, owner = payload.owner,
    ends = clock, lines = lines,
  }
  return grant(nil, new, 'D', shape.actor)
end

local function confirm(name, shape)
  local hold = find_hold(name, shape.known, shape.unknown_at)
  local payload = shape.payload
  if not hold then
    if payload then return confirm_unheard(name, shape) end
    stop('not_found')
  end
  local status = hold.status
  if hold.sealed then stop('already_cancelled', shown(hold)) end
  if payload then
    local digest = hold.mode == 1 and payload.deduct_digest or payload.reserve_digest
    if digest ~= hold.digest then stop('id_reused') end
  end
  if status == 'p' then return confirm_pending(hold, shape) end
  if status == 'c' then return compare(hold, shape) end
  if status == 'x' then stop('already_cancelled', shown(hold)) end
  return confirm_late(hold, shape)
end
return confirm
end

local names, named = {}, 0
for i = FIRST, #argv, WIDTH do
  named = named + 1
  names[named] = argv[i]
end
fetch(names)
local replies, number, confirm = {}, 0, nil
for i = FIRST, #argv, WIDTH do
  number = number + 1
  local name, shape = argv[i], shapes[tonumber(argv[i + 1])]
  local packed = holds[name]
  shape.head = shape.head or 'Cp' .. shape.actor .. '\31'
  local reply = packed and not shape.picks and not shape.payload and plain_turn(name, packed, 'c', shape.head)
  if not reply then
    confirm = confirm or long_way()
    reply = guarded(confirm, name, shape)
  end
  replies[number] = reply
end
-- @include commit
