-- Where the units of a cart would come from, or why it cannot be had.
local STEP = 32

-- SKUs known, sale open, revisions as asked; the asks, each with its SKU.
local function checked_asks(shape)
  if shape.asks then return shape.asks end
  local asks, missing, unknown = {}, nil, nil
  for k, line in ipairs(shape.lines) do
    local name = line[1]
    local sku = sku_of(name)
    if not sku then
      if is_absent(name, shape.absent) then
        unknown = unknown or { 'unknown_sku' }
        unknown[#unknown + 1] = k
      else
        missing = missing or { 'missing' }
        missing[#missing + 1] = name
      end
    end
    asks[k] = {
      k = k, sku = sku, quantity = line[2], asked = line[3] or '', first = line[4], revisions = line[5],
    }
  end
  if missing then error(missing, 0) end
  if unknown then error(unknown, 0) end
  shape.asks = asks
  return asks
end

-- Refuses with every line that fails, if any does.
local function refuse_lines(tag, asks, failing)
  local rows
  for _, ask in ipairs(asks) do
    local one, two = failing(ask)
    if one then
      rows = rows or { tag }
      rows[#rows + 1] = ask.k
      if one ~= true then rows[#rows + 1] = one end
      if two then rows[#rows + 1] = two end
    end
  end
  if rows then error(rows, 0) end
end

local function check_sale(shape)
  local ok, reply = pcall(checked_asks, shape)
  if not ok then
    shape.asks = nil
    error(reply, 0)
  end
  local asks = reply
  refuse_lines('paused', asks, function(ask) return ask.sku.paused end)
  refuse_lines('not_open', asks, function(ask)
    return ask.sku.opens and clock < tonumber(ask.sku.opens) and ask.sku.opens
  end)
  refuse_lines('closed', asks, function(ask)
    return ask.sku.closes and clock >= tonumber(ask.sku.closes) and ask.sku.closes
  end)
  refuse_lines('revision_conflict', asks, function(ask)
    for i, asked in ipairs(ask.revisions or {}) do
      if asked ~= ask.sku.revision then return i, fmt('%.0f', ask.sku.revision) end
    end
  end)
  return asks
end

-- Calls `each` with the first and last ask of every SKU.
local function by_sku(asks, each)
  local first = 1
  for i = 1, #asks do
    if i == #asks or asks[i + 1].sku ~= asks[first].sku then
      each(first, i)
      first = i + 1
    end
  end
end

local function over_limit(owner, asks, freed_lines)
  local rows
  by_sku(asks, function(first, last)
    local sku = asks[first].sku
    if not sku.limit then return end
    local asked, earliest, free = 0, asks[first], 0
    for i = first, last do
      asked = asked + asks[i].quantity
      if asks[i].first < earliest.first then earliest = asks[i] end
    end
    for _, line in ipairs(freed_lines) do
      if line.sku == sku and line.era == sku.era then free = free + sum_of(line, 'quantity') end
    end
    local used = math.max(0, used_of(sku, owner) - free)
    if used + asked > sku.limit then
      rows = rows or { 'limit_exceeded' }
      local n = #rows
      rows[n + 1], rows[n + 2], rows[n + 3] = earliest.k, used, sku.limit
    end
  end)
  return rows
end

local function new_line(ask, parts)
  return { id = ask.sku.id, name = ask.sku.name, sku = ask.sku, asked = ask.asked, era = ask.sku.era, parts = parts }
end

local function new_part(place, quantity)
  return { place = place, location = place.location, quantity = quantity, confirmed = 0, returned = 0 }
end

-- A line that leaves it to the allocation order: its parts, or nil and what it could have had; and whether more free
-- units could change that.
local function take_free(sku, ask, left)
  for rank, place in ipairs(sku.order) do
    if left[place] >= ask.quantity then
      left[place] = left[place] - ask.quantity
      return { new_part(place, ask.quantity) }, 0, rank == 1
    end
  end
  local all, most = 0, 0
  for _, place in ipairs(sku.order) do
    all, most = all + left[place], math.max(most, left[place])
  end
  if not sku.split then return nil, most end
  if all < ask.quantity then return nil, all end
  local parts, wanted = {}, ask.quantity
  for _, place in ipairs(sku.order) do
    local units = math.min(wanted, left[place])
    if units > 0 then
      parts[#parts + 1] = new_part(place, units)
      left[place], wanted = left[place] - units, wanted - units
    end
  end
  return parts, 0, false
end

-- One look: the lines and whether they would be the same with any more units free; or nil and the refusal.
local function look(owner, asks, freed_lines)
  local over = over_limit(owner, asks, freed_lines)
  if over then return nil, over end
  local lines, settled, short = {}, true, nil
  by_sku(asks, function(first, last)
    local sku, left = asks[first].sku, {}
    for _, place in ipairs(sku.places) do
      local reserved = place.reserved
      for _, line in ipairs(freed_lines) do
        for _, part in ipairs(line.parts) do
          if part.place == place then reserved = math.max(0, reserved - part.quantity) end
        end
      end
      left[place] = math.max(0, place.on_hand - reserved - place.safety)
    end
    local base = #lines
    local function failed(ask, could)
      short = short or { 'insufficient_stock' }
      short[#short + 1] = ask.k
      short[#short + 1] = could
    end
    -- Sorted: the line without a location stands first, and takes last.
    local pinned = asks[first].asked == '' and first + 1 or first
    local at = base + (pinned - first)
    for i = pinned, last do
      local ask = asks[i]
      local place = sku.index[ask.asked]
      local there = place and left[place] or 0
      if there < ask.quantity then
        failed(ask, there)
      else
        left[place] = there - ask.quantity
        at = at + 1
        lines[at] = new_line(ask, { new_part(place, ask.quantity) })
      end
    end
    if pinned > first then
      local parts, could, same = take_free(sku, asks[first], left)
      if parts then
        settled = settled and same
        lines[base + 1] = new_line(asks[first], parts)
      else
        failed(asks[first], could)
        -- Keeps the list without a hole; it is not used.
        lines[base + 1] = false
      end
    end
  end)
  if short then return nil, short end
  return lines, nil, settled
end

-- Checks owner limits and stock, and allocates. Due ends are freed as far as the answer depends on them.
local function plan(owner, asks, freed_lines)
  while true do
    local lines, refusal, settled = look(owner, asks, freed_lines)
    if settled or free_due(STEP) == 0 then
      if not lines then error(refusal, 0) end
      return lines
    end
  end
end

-- A new reservation, or one in the place of a lost one: moves its units and stores it.
local function grant(old, new, verb, actor)
  local shifts, uses = {}, {}
  for _, line in ipairs(new.lines) do
    local used = 0
    for _, part in ipairs(line.parts) do
      if new.status == 'p' then
        if part.quantity > 0 then shifts[#shifts + 1] = { part.place, 0, part.quantity, 0 } end
        used = used + part.quantity
      else
        if part.confirmed > 0 then shifts[#shifts + 1] = { part.place, -part.confirmed, 0, part.confirmed } end
        used = used + part.confirmed
      end
    end
    uses[#uses + 1] = { line.sku, line.era, new.owner, used }
  end
  carry(shifts, uses)
  new.noted = old and old.noted or false
  new.granted = AT
  return turn(new, verb, old and old.status or '-', actor, '')
end
