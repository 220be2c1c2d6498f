#!lua
-- return: sold units come back, at most what was confirmed, to where they came from; a batch of returns
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
-- ARGV[5..n] commands  text  -  of each: name of the return, number of its shape
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
-- @include picks
-- @include records
local FIRST, WIDTH = 5, 2

-- In reverse allocation order.
local function give_line(line, units, shifts)
  for i = #line.parts, 1, -1 do
    local part = line.parts[i]
    local back = math.min(units, part.confirmed - part.returned)
    if back > 0 then shifts[#shifts + 1] = { part.place, back, 0, -back } end
    part.returned = part.returned + back
    units = units - back
  end
end

local function give_back(name, shape)
  local past = record_of('x', RETURNS, name, shape.known, shape.unknown_at)
  if past then
    local at, own, reservation = match(past, '^(%d+)\31(%d+)\31([^\30]+)', 17)
    if not reservation then corrupt(RETURNS, '', 'holds a broken return of ' .. name) end
    if sub(past, 1, 16) ~= shape.digest then stop('id_reused') end
    local hold = find_hold(tenant_of(name) .. reservation, shape.known)
    if not hold then corrupt(RESERVATIONS, '', 'lacks the reservation of a return') end
    return { 'replayed', past, shown(hold) }
  end
  local hold = find_hold(shape.reservation, shape.known)
  if not hold then stop('not_found') end
  if hold.status ~= 'c' then stop('not_confirmed', shown(hold)) end
  local picks = picked(hold, shape.picks, sold_of, sold_of)
  local all = 0
  for _, pick in ipairs(picks or {}) do all = all + pick.units end
  if not picks or all == 0 then stop('invalid', shown(hold)) end
  local shifts, uses, back = {}, {}, {}
  for i, line in ipairs(bound_lines(hold)) do
    local units = picks[i].units
    if units > 0 then
      give_line(line, units, shifts)
      uses[#uses + 1] = { line.sku, line.era, hold.owner, -units }
      back[#back + 1] = '\30' .. line.id .. '\31' .. line.asked .. '\31' .. fmt('%.0f', units)
    end
  end
  carry(shifts, uses)
  local id = sub(hold.name, #tenant_of(hold.name) + 1)
  local record = shape.digest .. AT .. '\31' .. SEQ .. '\31' .. id .. concat(back)
  put_record('x', name, record)
  effect('B', 'c', shape.actor, shape.reason, name, record)
  hold.seq = SEQ
  ended.r[#ended.r + 1] = hold.name
  local packed = pack(hold)
  put(hold.name, packed)
  effect_part(hold.name)
  effect_part(packed)
  return { 'ok', record, packed }
end

local own, names = {}, {}
for i = FIRST, #argv, WIDTH do
  own[#own + 1] = argv[i]
  names[#names + 1] = shapes[tonumber(argv[i + 1])].reservation
end
fetch(names)
if not fetch_records('x', RETURNS, own) then return { 'damaged' } end
local replies, number = {}, 0
for i = FIRST, #argv, WIDTH do
  number = number + 1
  replies[number] = guarded(give_back, argv[i], shapes[tonumber(argv[i + 1])])
end
extra = function() write_records('x', RETURNS) end
-- @include commit
