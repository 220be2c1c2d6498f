#!lua flags=allow-oom
-- forget: let go of ended ids, oldest change first, whose last change is recorded and trimmed; the ledger has them
-- KEYS[1] meta          hash  rw  the shard's meta
-- KEYS[2] reservations  hash  rw  the epoch's reservations
-- KEYS[3] returns       hash  rw  the epoch's returns
-- KEYS[4] commands      hash  rw  the epoch's stock commands
-- KEYS[5] ended         list  rw  what ended, oldest change first
-- ARGV[1] epoch         int   -   1..9007199254740991
-- ARGV[2] recorded      int   -   0..9007199254740991; later changes stay, and so do those after the base
-- ARGV[3] older_than    int   ms  0..9007199254740991; what ended before this may go
-- ARGV[4] keep          int   -   0..9007199254740991; the most ended ids that stay
-- ARGV[5] keep_bytes    int   -   0..9007199254740991; the most memory that they may take, by estimate
-- ARGV[6] limit         int   -   1..100000; about how many are looked at
-- RETURNS {done, epoch, seq, tag, clock, forgotten, ended, bytes, more}  went, stay, their memory
-- RETURNS {no_meta} or {damaged} or {epoch, found} or {closed, found}  the shard is another one
-- ERRORS BADARG
-- @include meta
local meta_key, reservations, returns, commands, ended_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local epoch, recorded, older_than, keep, keep_bytes, limit, err
epoch, err = argument('epoch', ARGV[1])
if not epoch then return err end
recorded, err = argument('recorded', ARGV[2])
if not recorded then return err end
older_than, err = argument('older_than', ARGV[3])
if not older_than then return err end
keep, err = argument('keep', ARGV[4])
if not keep then return err end
keep_bytes, err = argument('keep_bytes', ARGV[5])
if not keep_bytes then return err end
limit, err = argument('limit', ARGV[6])
if not limit then return err end

local meta = meta_at(meta_key)
local no = stale(meta, epoch, true) or miscounted(meta, reservations)
if no then return no end
if not (is_hash(returns) and is_hash(commands) and is_type(ended_key, 'list')) then return { 'damaged' } end
recorded = math.min(recorded, meta.base_seq)

-- Where each kind is kept, and the entry of a record's last change; nothing for a reservation that is live.
local places = {
  r = { reservations, function(packed)
    if string.sub(packed, 1, 1) == 'p' then return nil end
    return string.match(packed, '^%d+\31%d+\31(%d+)\31', 19)
  end },
  x = { returns, function(packed) return string.match(packed, '^%d+\31(%d+)\31', 17) end },
  c = { commands, function(packed) return string.match(packed, '^%d+\31%d+\31(%d+)\31', 17) end },
}
local left = {
  [reservations] = meta.count - meta.live,
  [returns] = redis.call('HLEN', returns),
  [commands] = redis.call('HLEN', commands),
}
-- What one ended id takes, by the server's estimate for a few of them.
local function memory(key, records)
  return records > 0 and (redis.call('MEMORY', 'USAGE', key) or 0) / records or 0
end
local each = {
  [reservations] = memory(reservations, meta.count),
  [returns] = memory(returns, left[returns]),
  [commands] = memory(commands, left[commands]),
}
local function totals()
  local records, bytes = 0, 0
  for key, number in pairs(left) do
    records, bytes = records + number, bytes + number * each[key]
  end
  return records, math.floor(bytes)
end

local looked, forgotten, forgot, more = 0, 0, 0, 0
while true do
  local item = redis.call('LINDEX', ended_key, 0)
  if not item then break end
  local kind, at, seq, names = string.match(item, '^(%a)(%d+)\31(%d+)(.*)$')
  local place, number = places[kind or ''], whole(seq)
  if place and number then
    local records, bytes = totals()
    local wanted = tonumber(at) < older_than or records > keep or bytes > keep_bytes
    if not wanted or number > recorded then break end
    if looked >= limit then
      more = 1
      break
    end
    local key, seq_of = place[1], place[2]
    local going, of = {}, {}
    for name in string.gmatch(names, '\30([^\30]+)') do of[#of + 1] = name end
    looked = looked + math.max(1, #of)
    each_part(of, 1, #of, function(first, last)
      local found = redis.call('HMGET', key, unpack(of, first, last))
      for i = first, last do
        local packed = found[i - first + 1]
        -- Changed or forgotten since: another item stands for it.
        if packed and seq_of(packed) == seq then going[#going + 1] = of[i] end
      end
    end)
    local gone = 0
    each_part(going, 1, #going, function(first, last)
      gone = gone + redis.call('HDEL', key, unpack(going, first, last))
    end)
    forgotten, left[key] = forgotten + gone, left[key] - gone
    if gone > 0 then
      forgot = math.max(forgot, number)
      if key == reservations then meta.count = meta.count - gone end
    end
  else
    -- Nothing here writes such an item, and it names no record that could go.
    looked = looked + 1
    if looked >= limit then more = 1 end
  end
  redis.call('LPOP', ended_key)
  if more == 1 then break end
end
if forgotten > 0 then
  redis.call('HSET', meta_key, 'count', digits(meta.count), 'forgot', digits(math.max(forgot, meta.forgot)))
end
local records, bytes = totals()
local state, at_epoch, seq, tag, clock = done(meta)
return { state, at_epoch, seq, tag, clock, forgotten, records, bytes, more }
