-- The shard's meta: who may speak to this node, and where its chain stands.

-- The whole number that text writes in decimal digits, 0..2^53-1, or nil.
local function whole(text)
  if type(text) ~= 'string' or #text > 16 then return nil end
  if text ~= '0' and not string.find(text, '^[1-9]%d*$') then return nil end
  local number = tonumber(text)
  if number > 9007199254740991 then return nil end
  return number
end

-- A number as text: `..` would turn 2^53-1 into 9.007199254741e+15.
local function digits(number) return string.format('%.0f', number) end

-- An argument as a number, or nil and the error to return.
local function argument(name, text)
  local number = whole(text)
  if number then return number end
  return nil, redis.error_reply('BADARG ' .. name .. ' is not a whole number in 0..9007199254740991')
end

-- Meta as a table of numbers and tags; false where there is none; nil where it is not what the scripts here write.
local function meta_at(key)
  local found = redis.pcall('HMGET', key, 'epoch', 'open', 'seq', 'tag', 'clock', 'chunks', 'count', 'base_seq',
    'base_tag', 'live', 'forgot')
  if found.err then return nil end
  if not found[1] and redis.call('EXISTS', key) == 0 then return false end
  local meta = {
    epoch = whole(found[1]),
    open = whole(found[2]),
    seq = whole(found[3] or '0'),
    tag = found[4] or '0000000000000000',
    clock = whole(found[5] or '0'),
    chunks = whole(found[6]),
    count = whole(found[7]),
    base_seq = found[8] and whole(found[8]),
    base_tag = found[9],
    live = whole(found[10] or '0'),
    forgot = whole(found[11] or '0'),
  }
  if not (meta.epoch and meta.open and meta.seq and meta.clock and meta.chunks and meta.count) then return nil end
  if meta.base_seq == nil or not (meta.live and meta.forgot) or #meta.tag ~= 16 then return nil end
  return meta
end

-- Why a shard takes nothing from a caller of that epoch, or nil. With `open` it has to be open, too.
local function stale(meta, epoch, open)
  if meta == false then return { 'no_meta' } end
  if not meta then return { 'damaged' } end
  if meta.epoch ~= epoch then return { 'epoch', meta.epoch } end
  if open and meta.open ~= 1 then return { 'closed', meta.epoch } end
end

-- The first part of a reply of something done: the tip and the clock.
local function done(meta) return 'done', meta.epoch, meta.seq, meta.tag, meta.clock end

local function is_type(key, expected)
  local found = redis.call('TYPE', key).ok
  return found == 'none' or found == expected
end

local function is_hash(key) return is_type(key, 'hash') end

-- The tag of an entry in the outbox; false when it is not there, nil when the outbox is none.
local function tag_at(outbox, epoch, seq)
  local id = digits(epoch) .. '-' .. digits(seq)
  local entry = redis.pcall('XRANGE', outbox, id, id)
  if entry.err then return nil end
  if not entry[1] then return false end
  local fields = entry[1][2]
  for i = 1, #fields, 2 do
    if fields[i] == 'tag' then return fields[i + 1] end
  end
  return false
end

-- The number of reservations is the one that was counted, or somebody else has been at them.
local function miscounted(meta, reservations)
  local held = redis.pcall('HLEN', reservations)
  if held ~= meta.count then return { 'damaged' } end
end

-- The second of the shard's clock, which does not run back.
local function second(meta)
  return math.max(tonumber(redis.call('TIME')[1]), math.floor(meta.clock / 1000))
end

-- Lua's stack takes some thousand values at a time.
local function each_part(list, first, last, act)
  while first <= last do
    local stop = math.min(first + 999, last)
    act(first, stop)
    first = stop + 1
  end
end

local function put_all(verb, key, list, first, last)
  each_part(list, first, last, function(from, to) redis.call(verb, key, unpack(list, from, to)) end)
end
