-- Reservations: read once a call into the overlay, kept as they are packed, spelled out where they change.
local function put(name, packed)
  holds[name] = packed
  hset[hset_count + 1] = name
  hset[hset_count + 2] = packed
  hset_count = hset_count + 2
end

local function to_bucket(name, second)
  local list = buckets[second]
  if not list then
    list = {}
    buckets[second] = list
  end
  list[#list + 1] = name
end

local function broken(name)
  corrupt(RESERVATIONS, '', 'holds a broken reservation of ' .. name)
end

local LETTERS = { p = true, c = true, x = true, e = true, l = true }

-- A reservation, spelled out but for its lines.
local function head_of(name, packed)
  local status, flags = sub(packed, 1, 1), string.byte(packed, 2)
  local granted, ends, own_seq, owner, rest = match(packed, '^(%d+)\31(%d+)\31(%d*)\31([^\29-\31]*)(.*)$', 19)
  local ends_at = whole(ends)
  if not (LETTERS[status] and flags and flags >= 64 and flags < 72 and ends_at and whole(granted)) then
    broken(name)
  end
  flags = flags - 64
  return {
    name = name, status = status, mode = flags % 2, sealed = flags % 4 >= 2, noted = flags >= 4,
    digest = sub(packed, 3, 18), granted = granted, ends = ends_at, seq = own_seq, owner = owner, rest = rest,
  }
end

local function part_of(name, sku, text, status)
  local location, q, c, r = match(text, '^([^\31]+)\31(%d+)\31(%d+)\31(%d+)$')
  local quantity, confirmed, returned = whole(q), whole(c), whole(r)
  if not (quantity and confirmed and returned) or confirmed > quantity or returned > confirmed then broken(name) end
  return { location = location, quantity = quantity, confirmed = confirmed, returned = returned }
end

-- Its lines: what is stored alone, so that a read needs no SKU.
local function lines_of(hold)
  if hold.lines then return hold.lines end
  local name, lines = hold.name, {}
  local tenant = tenant_of(name)
  local id, quantity = match(hold.rest, '^\31([^\29-\31]+)\31(%d+)$')
  if id then
    quantity = whole(quantity)
    if not quantity then broken(name) end
    local confirmed = hold.status == 'c' and quantity or 0
    lines[1] = {
      id = id, name = tenant .. id, asked = '', era = 0,
      parts = { { location = 'default', quantity = quantity, confirmed = confirmed, returned = 0 } },
    }
  elseif hold.rest ~= '' then
    if sub(hold.rest, 1, 1) ~= '\30' then broken(name) end
    for text in gmatch(hold.rest, '\30([^\30]*)') do
      local sku, asked, era, parts = match(text, '^([^\29\31]+)\31([^\29\31]*)\31(%d+)(.*)$')
      local line = { id = sku, name = sku and tenant .. sku, asked = asked, era = whole(era), parts = {} }
      if not line.era then broken(name) end
      for part in gmatch(parts, '\29([^\29]*)') do
        line.parts[#line.parts + 1] = part_of(name, sku, part, hold.status)
      end
      lines[#lines + 1] = line
    end
  end
  hold.lines = lines
  return lines
end

-- Its lines with the SKUs and places they are of.
local function bound_lines(hold)
  local lines, missing = lines_of(hold), nil
  for _, line in ipairs(lines) do
    line.sku = line.sku or sku_of(line.name)
    if not line.sku then
      missing = missing or { 'missing' }
      missing[#missing + 1] = line.name
    else
      for _, part in ipairs(line.parts) do
        part.place = line.sku.index[part.location]
        if not part.place then
          corrupt(line.sku.key, line.name, 'lacks a location of a reservation: ' .. part.location)
        end
      end
    end
  end
  if missing then error(missing, 0) end
  return lines
end

local function sum_of(line, what)
  local sum = 0
  for _, part in ipairs(line.parts) do sum = sum + part[what] end
  return sum
end

-- Confirmed and not yet returned.
local function sold_of(line)
  return sum_of(line, 'confirmed') - sum_of(line, 'returned')
end

-- Marks units of a line as confirmed, in allocation order.
local function confirm_line(line, units)
  for _, part in ipairs(line.parts) do
    part.confirmed = math.min(units, part.quantity)
    units = units - part.confirmed
  end
end

local function pack(hold)
  local flags = 64 + hold.mode + (hold.sealed and 2 or 0) + (hold.noted and 4 or 0)
  local text = hold.status .. string.char(flags) .. hold.digest .. hold.granted .. '\31' .. fmt('%.0f', hold.ends)
    .. '\31' .. (hold.status == 'p' and '' or hold.seq) .. '\31' .. hold.owner
  local lines = lines_of(hold)
  local line = lines[1]
  if not line then return text end
  local part = line.parts[1]
  if #lines == 1 and #line.parts == 1 and line.asked == '' and line.era == 0 and part.location == 'default'
    and part.returned == 0 and part.confirmed == (hold.status == 'c' and part.quantity or 0) then
    return text .. '\31' .. line.id .. '\31' .. fmt('%.0f', part.quantity)
  end
  local out = { text }
  for _, one in ipairs(lines) do
    out[#out + 1] = '\30' .. one.id .. '\31' .. one.asked .. '\31' .. fmt('%.0f', one.era)
    for _, p in ipairs(one.parts) do
      out[#out + 1] = '\29' .. p.location .. fmt('\31%.0f\31%.0f\31%.0f', p.quantity, p.confirmed, p.returned)
    end
  end
  return concat(out)
end

-- Stores what a reservation has become and adds the change to the entry. `before` is its status until now.
local function turn(hold, verb, before, actor, reason)
  local was_live, is_live = before == 'p', hold.status == 'p'
  if is_live then
    if verb ~= 'N' then to_bucket(hold.name, second_of(hold.ends)) end
  else
    hold.seq = SEQ
    ended.r[#ended.r + 1] = hold.name
  end
  live = live + (is_live and 1 or 0) - (was_live and 1 or 0)
  if before == '-' then count = count + 1 end
  local packed = pack(hold)
  put(hold.name, packed)
  effect(verb, before, actor, reason, hold.name, packed)
  return packed
end

-- All units of a pending reservation go back.
local function release(hold)
  local shifts, uses = {}, {}
  for _, line in ipairs(bound_lines(hold)) do
    for _, part in ipairs(line.parts) do
      if part.quantity > 0 then shifts[#shifts + 1] = { part.place, 0, -part.quantity, 0 } end
    end
    uses[#uses + 1] = { line.sku, line.era, hold.owner, -sum_of(line, 'quantity') }
  end
  carry(shifts, uses)
end

-- Ends a live reservation whose end has passed.
local function expire(hold)
  release(hold)
  hold.status = 'e'
  turn(hold, 'P', 'p', 'stockade', '')
end

-- What the ledger said about an id that is not held here: nil when it must be asked, false when it does not know it.
-- `unknown_at` is the cursor at which it did not know the command's own id.
local function known_of(kind, name, known, unknown_at)
  if forgot == 0 or (unknown_at and unknown_at >= forgot) then return false end
  local found = known and known[kind .. name]
  if not found or found[1] < forgot then return nil end
  return found[2]
end

-- Finds a reservation and spells its head out; false when there is none. One that is past its end is ended first.
local function find_hold(name, known, unknown_at)
  local packed = holds[name]
  if packed == nil then
    fetch({ name })
    packed = holds[name]
  end
  if not packed then
    packed = known_of('r', name, known, unknown_at)
    if packed == nil then stop('look_up', 'r', name) end
    if not packed then return false end
    if sub(packed, 1, 1) == 'p' then
      corrupt(RESERVATIONS, '', 'lacks a reservation that the ledger has as live')
    end
    -- As of the last entry that this shard does not hold.
    local hold = head_of(name, packed)
    hold.seq = fmt('%.0f', forgot)
    packed = pack(hold)
    put(name, packed)
    count = count + 1
    brought.r[#brought.r + 1] = name
    return hold
  end
  local hold = head_of(name, packed)
  if hold.status == 'p' and hold.ends <= clock then expire(hold) end
  return hold
end

-- `packed` of a hold as it stands.
local function shown(hold)
  return holds[hold.name]
end
