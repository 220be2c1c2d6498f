-- SKUs and owner usage, read once a call into the overlay.
local function corrupt(key, sku, what)
  stop('corrupt', key, sku, what)
end

-- What is left at a place.
local function available(place)
  local left = place.on_hand - place.reserved - place.safety
  if left > 0 then return left end
  return 0
end

-- Puts the places that the operator named first; the others follow as they were made.
local function reorder(sku)
  local order, named = {}, {}
  for i, place in ipairs(sku.named) do
    order[i] = place
    named[place] = true
  end
  for _, place in ipairs(sku.places) do
    if not named[place] then order[#order + 1] = place end
  end
  sku.order = order
end

local function add_place(sku, place)
  place.sku, place.key, place.name = sku, sku.key, sku.name
  sku.places[#sku.places + 1] = place
  sku.index[place.location] = place
end

local SETTINGS = {
  limit_per_owner = function(sku, text) sku.limit = whole(text) return sku.limit and sku.limit > 0 end,
  opens_at = function(sku, text) sku.opens = find(text, '^%-?%d+$') and text return sku.opens end,
  closes_at = function(sku, text) sku.closes = find(text, '^%-?%d+$') and text return sku.closes end,
  paused = function(sku, text) sku.paused = true return text == '1' end,
  split = function(sku, text) sku.split = false return text == '0' end,
  era = function(sku, text) sku.era = whole(text) return sku.era and sku.era > 0 end,
  group = function(sku, text) sku.group = text return text ~= '' end,
  tracked = function(sku, text) sku.tracked = true return text == '1' end,
  order = function(sku, text)
    for name in gmatch(text, '[^\n]+') do
      local place = sku.index[name]
      if not place then return false end
      sku.named[#sku.named + 1] = place
    end
    return #sku.named > 0
  end,
}

local function new_sku(name)
  return {
    name = name, id = match(name, '[^\31]+$'), key = BASE .. 'sku:' .. name, revision = 0, era = 0, split = true,
    places = {}, index = {}, named = {}, order = {},
  }
end

-- What is wrong with the fields of a SKU, or nothing.
local function read_sku(sku, raw)
  local fields, left = {}, #raw / 2
  for i = 1, #raw, 2 do fields[raw[i]] = raw[i + 1] end
  sku.revision = whole(fields.revision)
  if not sku.revision then return 'revision' end
  if not fields.locations then return 'locations' end
  left = left - 2
  for location in gmatch(fields.locations, '[^\n]+') do
    local text = fields['location:' .. location]
    local place = text and not sku.index[location] and place_of(text, location)
    if not place then return 'location:' .. location end
    add_place(sku, place)
    left = left - 1
  end
  if left > 0 then
    for name, read in pairs(SETTINGS) do
      local text = fields[name]
      if text then
        if not read(sku, text) then return name end
        left = left - 1
      end
    end
    if left ~= 0 then return 'a field that does not belong there' end
    if sku.limit and not sku.tracked then return 'limit_per_owner' end
  end
  reorder(sku)
end

-- A SKU; false when it is not held.
local function sku_of(name)
  local sku = skus[name]
  if sku == nil then
    sku = new_sku(name)
    local plain = plains[name]
    local raw = plain and {} or redis.pcall('HGETALL', sku.key)
    if plain then
      sku.revision = tonumber(plain.revision)
      add_place(sku, plain)
      reorder(sku)
    elseif raw.err then
      sku.damage = raw.err
    elseif #raw == 0 then
      sku = false
    else
      sku.damage = read_sku(sku, raw)
    end
    skus[name] = sku
  end
  if sku and sku.damage then corrupt(sku.key, name, 'holds a ' .. sku.damage .. ' that cannot be') end
  return sku
end

-- Whether the ledger said, under the marker that is still there, that it does not know the SKU either.
local function is_absent(name, absent)
  local token = absent and absent[name]
  if not token then return false end
  local marker = redis.pcall('HGET', MARKERS, name)
  return type(marker) == 'string' and find(marker, 'absent ' .. token, 1, true) == 1
end

-- The SKU of a stored reservation.
local function held_sku(name)
  local sku = sku_of(name)
  if not sku then stop('missing', name) end
  return sku
end

-- Fields of a SKU, as they are stored.
fields_of = function(sku)
  local names, named, fields = {}, {}, {}
  for i, place in ipairs(sku.places) do names[i] = place.location end
  for i, place in ipairs(sku.named) do named[i] = place.location end
  local function add(name, text)
    if text then
      fields[#fields + 1] = name
      fields[#fields + 1] = text
    end
  end
  add('revision', fmt('%.0f', sku.revision))
  add('locations', concat(names, '\n'))
  for _, place in ipairs(sku.places) do add('location:' .. place.location, text_of(place)) end
  add('limit_per_owner', sku.limit and fmt('%.0f', sku.limit))
  add('opens_at', sku.opens)
  add('closes_at', sku.closes)
  add('paused', sku.paused and '1')
  add('split', not sku.split and '0')
  add('era', sku.era > 0 and fmt('%.0f', sku.era))
  add('order', #named > 0 and concat(named, '\n'))
  add('group', sku.group)
  add('tracked', sku.tracked and '1')
  return fields
end

-- The settings among them, as one text.
local function settings_of(sku)
  local fields, out = fields_of(sku), {}
  for i = 1, #fields, 2 do
    local name = fields[i]
    if SETTINGS[name] and name ~= 'tracked' then out[#out + 1] = name .. '=' .. fields[i + 1] end
  end
  return concat(out, '\31')
end

-- Owner usage: of the present era of a tracked SKU.
local usages = {}

local function usage_of(sku, owner)
  local field = sku.name .. '\30' .. owner
  local usage = usages[field]
  if not usage then
    usage = { field = field, used = 0, era = sku.era }
    local text = redis.pcall('HGET', USAGE, field)
    if text then
      local era, used
      if type(text) == 'string' then era, used = match(text, '^(%d+):(%d+)$') end
      era, used = whole(era), whole(used)
      if not (era and used) then corrupt(USAGE, sku.name, 'holds a usage that cannot be') end
      usage.stored = true
      if era == sku.era then usage.used = used end
    end
    usages[field] = usage
  end
  if usage.era ~= sku.era then usage.era, usage.used = sku.era, 0 end
  return usage
end

local function used_of(sku, owner)
  if not sku.tracked then return 0 end
  return usage_of(sku, owner).used
end

-- Changes that happen together or not at all: everything is checked, then everything is changed. A shift is
-- { place, on_hand, reserved, sold, safety or nil }; a use is { sku, era, owner, units }.
local function carry(shifts, uses)
  local merged, list = {}, {}
  for _, shift in ipairs(shifts) do
    local place = shift[1]
    local sum = merged[place]
    if sum then
      sum[2], sum[3], sum[4], sum[5] = sum[2] + shift[2], sum[3] + shift[3], sum[4] + shift[4], shift[5] or sum[5]
    else
      sum = { place, shift[2], shift[3], shift[4], shift[5] }
      merged[place] = sum
      list[#list + 1] = sum
    end
  end
  for _, sum in ipairs(list) do
    local place = sum[1]
    local on_hand, reserved, sold = place.on_hand + sum[2], place.reserved + sum[3], place.sold + sum[4]
    if on_hand < 0 or reserved < 0 or sold < 0 or reserved > on_hand or on_hand + sold > MAX then
      corrupt(place.sku.key, place.sku.name, 'holds counters of ' .. place.location .. ' that reservations contradict')
    end
    sum[6], sum[7], sum[8] = on_hand, reserved, sold
  end
  local by_owner, after = {}, {}
  for _, use in ipairs(uses) do
    local sku, era, owner, units = use[1], use[2], use[3], use[4]
    -- Undo touches usage only in the era in which it was counted.
    if units ~= 0 and sku.tracked and sku.era == era then
      local usage = usage_of(sku, owner)
      local now = by_owner[usage]
      if not now then
        after[#after + 1] = usage
        now = usage.used
      end
      by_owner[usage] = now + units
    end
  end
  for _, usage in ipairs(after) do
    if by_owner[usage] < 0 then corrupt(USAGE, '', 'holds a usage below zero') end
  end
  for _, sum in ipairs(list) do
    local place = sum[1]
    touch(place)
    place.on_hand, place.reserved, place.sold = sum[6], sum[7], sum[8]
    place.safety = sum[5] or place.safety
    place.version = place.version + 1
  end
  for _, usage in ipairs(after) do
    usage.used = by_owner[usage]
    changed_usages[usage] = true
  end
end
