-- The overlay: what the call has read and changed; and the short ways, on which most of a rush goes. They know
-- one line of a plain SKU: one location, `default`, and no setting that is not the default. Whatever is not that plain
-- takes the long way, which is loaded when it is first needed.
local holds, hset, hset_count, buckets = {}, {}, 0, {}
local skus, touched, changed_skus, changed_usages, plains = {}, {}, {}, {}, {}
local due = { at = 0, list = {}, pos = 0, over = false, trims = {}, gone = {}, unheld = {} }
-- Set by the long way.
local fields_of

-- Reads reservations that the call will need.
local function fetch(names)
  for first = 1, #names, 4000 do
    local last = math.min(#names, first + 3999)
    local got = redis.call('HMGET', RESERVATIONS, unpack(names, first, last))
    for i = first, last do holds[names[i]] = got[i - first + 1] end
  end
end

local function second_of(ends)
  return math.ceil(ends / 1000)
end

-- Counters from their text, or nil: no number in it is written in another way than by `text_of`.
local function place_of(text, location)
  local a, b, c, d, e =
    match(text, '^on_hand=(%d+) reserved=(%d+) sold=(%d+) safety_stock=(%d+) version=(%d+)$')
  if not a or find(text, '=0%d') then return nil end
  local on_hand, reserved, sold, safety, version =
    tonumber(a), tonumber(b), tonumber(c), tonumber(d), tonumber(e)
  if reserved > on_hand or on_hand + sold > MAX or safety > MAX or version > MAX then return nil end
  return {
    location = location, on_hand = on_hand, reserved = reserved, sold = sold, safety = safety, version = version,
    raw = text,
  }
end

local function text_of(place)
  return fmt('on_hand=%.0f reserved=%.0f sold=%.0f safety_stock=%.0f version=%.0f',
    place.on_hand, place.reserved, place.sold, place.safety, place.version)
end

-- The only place of a plain SKU, or false.
local function plain_of(name)
  local place = plains[name]
  if place ~= nil then return place end
  -- On the long way already.
  if skus[name] ~= nil then return false end
  local key = BASE .. 'sku:' .. name
  local raw = redis.pcall('HGETALL', key)
  place = false
  if #raw == 6 then
    -- A hash gives its fields in any order.
    local fields = { [raw[1]] = raw[2], [raw[3]] = raw[4], [raw[5]] = raw[6] }
    local text = fields['location:default']
    if text and fields.locations == 'default' and whole(fields.revision) then
      place = place_of(text, 'default') or false
      if place then place.key, place.name, place.revision = key, name, fields.revision end
    end
  end
  plains[name] = place
  return place
end

local function touch(place)
  if not place.touched then
    place.touched = true
    touched[#touched + 1] = place
  end
end

-- Turns a pending reservation of one plain line, whose id is of the default tenant, into confirmed (c), cancelled (x)
-- or expired (e): its new form, or nothing when it has to go the long way.
local function plain_turn(name, packed, status, head)
  if string.byte(packed) ~= 112 then return nil end
  local times, ends, rest, id, units =
    match(packed, '^(%d+\31(%d+)\31)(\31[^\29-\31]+\31([^\29-\31]+)\31(%d+))$', 19)
  if not times or (tonumber(ends) > clock) == (status == 'e') or find(name, '\31', 1, true) then return nil end
  local place = plain_of(id)
  units = whole(units)
  if not place or place.sku or not units or units > place.reserved then return nil end
  if not place.touched then touch(place) end
  place.reserved, place.version = place.reserved - units, place.version + 1
  if status == 'c' then place.on_hand, place.sold = place.on_hand - units, place.sold + units end
  live = live - 1
  packed = status .. sub(packed, 2, 18) .. times .. SEQ .. rest
  holds[name] = packed
  hset[hset_count + 1], hset[hset_count + 2] = name, packed
  hset_count = hset_count + 2
  effects[effect_count + 1], effects[effect_count + 2], effects[effect_count + 3] = head, name, packed
  effect_count = effect_count + 3
  local list = ended.r
  list[#list + 1] = name
  return packed
end
