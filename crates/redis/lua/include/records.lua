-- Returns and stock commands: kept for replays, packed.
local records = { x = {}, c = {} }
local record_writes = { x = {}, c = {} }

-- Reads those that the call will need; nothing when their key is of another type.
local function fetch_records(kind, key, names)
  local own = records[kind]
  for first = 1, #names, 4000 do
    local last = math.min(#names, first + 3999)
    local got = redis.pcall('HMGET', key, unpack(names, first, last))
    if got.err then return nil end
    for i = first, last do own[names[i]] = got[i - first + 1] end
  end
  return true
end

local function put_record(kind, name, packed)
  records[kind][name] = packed
  local writes = record_writes[kind]
  writes[#writes + 1] = name
  writes[#writes + 1] = packed
  ended[kind][#ended[kind] + 1] = name
end

-- A record, packed; false when there is none. One that the ledger brings is kept.
local function record_of(kind, key, name, known, unknown_at)
  local packed = records[kind][name]
  if packed then return packed end
  packed = known_of(kind, name, known, unknown_at)
  if packed == nil then stop('look_up', kind, name) end
  if not packed then return false end
  local own = fmt('%.0f', forgot)
  -- As of the last entry that this shard does not hold.
  if kind == 'x' then
    local at, rest = match(packed, '^(%d+)\31%d+(\31.*)$', 17)
    packed = sub(packed, 1, 16) .. at .. '\31' .. own .. rest
  else
    local revision, at, rest = match(packed, '^(%d+)\31(%d+)\31%d+(\31.*)$', 17)
    packed = sub(packed, 1, 16) .. revision .. '\31' .. at .. '\31' .. own .. rest
  end
  records[kind][name] = packed
  local writes = record_writes[kind]
  writes[#writes + 1] = name
  writes[#writes + 1] = packed
  brought[kind][#brought[kind] + 1] = name
  return packed
end

local function write_records(kind, key)
  put_all('HSET', key, record_writes[kind], #record_writes[kind])
end
