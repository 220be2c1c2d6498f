#!lua
-- stock: operators' commands on SKUs: count, adjust, transfer, configure; a batch of them
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
-- ARGV[5..n] commands  text  -  of each: name of the command, number of its shape
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
-- @include records
local FIRST, WIDTH = 5, 2
local LOCATIONS_MAX = 100
local created_skus = {}

local function answer(code, revision, sku)
  return { 'stock', code, revision, unpack(fields_of(sku)) }
end

-- The SKU, or false when nobody knows it.
local function asked_sku(name, absent)
  local sku = sku_of(name)
  if not sku and not is_absent(name, absent) then stop('missing', name) end
  return sku
end

local function check_revision(sku, expect)
  if expect ~= nil and (not sku or expect ~= sku.revision) then
    if not sku and expect == 'absent' then return end
    stop('revision_conflict', sku and fmt('%.0f', sku.revision) or '')
  end
end

local function known_place(sku, location)
  return sku.index[location] or stop('unknown_location', location)
end

local NONE = { on_hand = 0, reserved = 0, sold = 0, safety = 0, version = 0 }

-- Refuses with the counters, from which the caller works out the words.
local function refuse_count(which, place)
  stop('count', which, place and 1 or 0, text_of(place or NONE))
end

-- Not below what is reserved, and supply stays in its range.
local function check_on_hand(which, place, result)
  local before = place or NONE
  if result < before.reserved or result + before.sold > MAX then refuse_count(which, place) end
end

-- Carries a granted command out. Moves are { place, on_hand, safety or nil }.
local function done(name, shape, sku, moves, created)
  local shifts, texts = {}, {}
  for i, move in ipairs(moves) do
    shifts[i] = { move[1], move[2], 0, 0, move[3] }
    texts[i] = move[1].location .. '\31' .. fmt('%.0f', move[2]) .. '\31' .. (move[3] and fmt('%.0f', move[3]) or '')
  end
  carry(shifts, {})
  sku.revision = sku.revision + 1
  sku.rewritten, changed_skus[sku] = true, true
  local revision = fmt('%.0f', sku.revision)
  local record = shape.digest .. revision .. '\31' .. AT .. '\31' .. SEQ .. '\31' .. sku.id
  put_record('c', name, record)
  effect(shape.verb, '-', shape.actor, shape.reason, name, record)
  effect_part(created and '1' or '0')
  effect_part((created or shape.verb == 'f') and settings_of(sku) or '')
  effect_part(fmt('%.0f', #texts))
  for _, text in ipairs(texts) do effect_part(text) end
  return answer('ok', revision, sku)
end

local function set(name, shape, sku)
  local place = sku and sku.index[shape.location]
  if sku and not place and #sku.places >= LOCATIONS_MAX then stop('locations_full') end
  local before, since = place or NONE, 0
  if place and shape.count == 'create' then refuse_count('on_hand', place) end
  if shape.count == 'seen' then
    if shape.seen > before.sold then refuse_count('on_hand', place) end
    since = before.sold - shape.seen
  end
  local result = shape.target - since
  check_on_hand('on_hand', place, result)
  local created = not sku
  if created then
    sku = new_sku(shape.sku)
    skus[shape.sku] = sku
    created_skus[#created_skus + 1] = shape.sku
  end
  if not place then
    place = { location = shape.location, on_hand = 0, reserved = 0, sold = 0, safety = 0, version = 0 }
    add_place(sku, place)
    reorder(sku)
  end
  return done(name, shape, sku, { { place, result - before.on_hand } }, created)
end

local function adjust(name, shape, sku)
  local place = known_place(sku, shape.location)
  check_on_hand('delta', place, place.on_hand + shape.delta)
  return done(name, shape, sku, { { place, shape.delta } })
end

local function transfer(name, shape, sku)
  local from = known_place(sku, shape.from)
  check_on_hand('from', from, from.on_hand - shape.quantity)
  local to = known_place(sku, shape.to)
  check_on_hand('to', to, to.on_hand + shape.quantity)
  return done(name, shape, sku, { { from, -shape.quantity }, { to, shape.quantity } })
end

-- A setting that is given: false removes it, nil leaves it.
local function changed(now, change)
  if change == nil then return now end
  return change or nil
end

local function configure(name, shape, sku)
  local opens, closes = changed(sku.opens, shape.opens), changed(sku.closes, shape.closes)
  if opens and closes and tonumber(closes) <= tonumber(opens) then stop('window', opens, closes) end
  local moves, named = {}, nil
  for i, floor in ipairs(shape.safety) do moves[i] = { known_place(sku, floor[1]), 0, floor[2] } end
  if shape.order then
    named = {}
    for i, location in ipairs(shape.order) do named[i] = known_place(sku, location) end
  end
  if shape.limit and not sku.tracked and not shape.reset then
    -- What owners hold is not kept here: the SKU has to be loaded again together with that.
    sku.dropped, changed_skus[sku], skus[sku.name] = true, true, false
    stop('missing', sku.name)
  end
  if shape.reset then
    sku.era = sku.era + 1
    -- Nobody has used anything in the new era.
    if shape.limit then sku.tracked = true end
  end
  if named then
    sku.named = named
    reorder(sku)
  end
  sku.limit = changed(sku.limit, shape.limit)
  sku.opens, sku.closes = opens, closes
  if shape.paused ~= nil then sku.paused = shape.paused or nil end
  if shape.split ~= nil then sku.split = shape.split end
  sku.group = changed(sku.group, shape.group)
  return done(name, shape, sku, moves)
end

local VERBS = { s = set, a = adjust, t = transfer, f = configure }

local function change(name, shape)
  local past = record_of('c', COMMANDS, name, shape.known, shape.unknown_at)
  if past then
    local revision, sku = match(past, '^(%d+)\31%d+\31%d+\31(.+)$', 17)
    if not revision then corrupt(COMMANDS, '', 'holds a broken command of ' .. name) end
    if sub(past, 1, 16) ~= shape.digest then stop('id_reused') end
    local held = asked_sku(tenant_of(name) .. sku, shape.absent)
    if not held then stop('unknown_sku') end
    free_all_due()
    return answer('replayed', revision, held)
  end
  if shape.invalid then stop('invalid') end
  local sku = asked_sku(shape.sku, shape.absent)
  if not sku and shape.verb ~= 's' then stop('unknown_sku') end
  check_revision(sku, shape.expect)
  free_all_due()
  return VERBS[shape.verb](name, shape, sku)
end

local names = {}
for i = FIRST, #argv, WIDTH do names[#names + 1] = argv[i] end
if not fetch_records('c', COMMANDS, names) then return { 'damaged' } end
local replies, number = {}, 0
for i = FIRST, #argv, WIDTH do
  number = number + 1
  replies[number] = guarded(change, argv[i], shapes[tonumber(argv[i + 1])])
end
extra = function()
  write_records('c', COMMANDS)
  for _, name in ipairs(created_skus) do redis.call('HDEL', MARKERS, name) end
end
-- @include commit
