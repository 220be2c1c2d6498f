-- The end of every decision: the entry first, then the writes, whose types were all seen before.
local function entry_bytes()
  local parts = { '1', AT, fmt('%.0f', #touched) }
  local n = 3
  for _, place in ipairs(touched) do
    place.text = text_of(place)
    parts[n + 1], parts[n + 2], parts[n + 3], parts[n + 4] = place.sku.name, place.location, place.raw or '', place.text
    n = n + 4
  end
  local head = concat(parts, '\28')
  return head .. '\28' .. concat(effects, '\28', 1, effect_count)
end

local function queue(lists, own)
  for kind, names in pairs(lists) do
    if #names > 0 then
      redis.call('RPUSH', ENDED, kind .. AT .. '\31' .. own .. '\30' .. concat(names, '\30'))
    end
  end
end

-- Returns what the call answers, with the replies in order; or, where a key is of another type than it should be,
-- that it is damaged, with nothing written.
local function commit(replies, number, extra)
  local fresh = {}
  for second, names in pairs(buckets) do
    if #names == 0 then buckets[second] = nil end
  end
  for second in pairs(buckets) do
    local key = BASE .. 'end:' .. fmt('%.0f', second)
    local length = redis.pcall('LLEN', key)
    if type(length) ~= 'number' then return { 'damaged' } end
    if length == 0 then fresh[#fresh + 1] = second end
  end
  if #fresh > 0 and type(redis.pcall('ZCARD', ENDS)) ~= 'number' then return { 'damaged' } end
  local queued = #ended.r + #ended.x + #ended.c + #brought.r + #brought.x + #brought.c > 0
  if queued and type(redis.pcall('LLEN', ENDED)) ~= 'number' then return { 'damaged' } end

  local wrote = 0
  if effect_count > 0 then
    local added = redis.pcall('XADD', OUTBOX, EPOCH .. '-' .. SEQ, 'tag', TAG, 'prev', PREV, 'e', entry_bytes())
    if type(added) ~= 'string' then return { 'damaged' } end
    seq, PREV, wrote = seq + 1, TAG, 1
    redis.call('HSET', META, 'seq', SEQ, 'tag', TAG, 'clock', AT, 'count', fmt('%.0f', count),
      'live', fmt('%.0f', live))
  elseif hset_count > 0 or clock > last_clock then
    redis.call('HSET', META, 'clock', AT, 'count', fmt('%.0f', count))
  end
  if hset_count > 0 then hset_all(RESERVATIONS, hset, hset_count) end
  for second in pairs(due.gone) do
    if not buckets[tonumber(second)] then
      redis.call('DEL', BASE .. 'end:' .. second)
      redis.call('ZREM', ENDS, second)
    end
  end
  for second, length in pairs(due.trims) do
    if length > 0 then redis.call('LTRIM', BASE .. 'end:' .. second, fmt('%.0f', length), '-1') end
  end
  for second, names in pairs(buckets) do push_all(BASE .. 'end:' .. fmt('%.0f', second), names) end
  for _, second in ipairs(fresh) do
    local text = fmt('%.0f', second)
    redis.call('ZADD', ENDS, text, text)
  end
  for _, place in ipairs(touched) do
    local sku = place.sku
    if not (sku.rewritten or sku.dropped) then
      redis.call('HSET', sku.key, 'location:' .. place.location, place.text or text_of(place))
    end
  end
  for sku in pairs(changed_skus) do
    if sku.dropped then
      redis.call('DEL', sku.key)
    else
      local fields = fields_of(sku)
      redis.call('DEL', sku.key)
      redis.call('HSET', sku.key, unpack(fields))
    end
  end
  for usage in pairs(changed_usages) do
    if usage.used > 0 then
      redis.call('HSET', USAGE, usage.field, fmt('%.0f:%.0f', usage.era, usage.used))
    elseif usage.stored then
      redis.call('HDEL', USAGE, usage.field)
    end
  end
  queue(ended, SEQ)
  queue(brought, fmt('%.0f', forgot))
  if extra then extra() end
  local answer = { 'done', tonumber(EPOCH), seq, PREV, clock, wrote }
  for i = 1, number do answer[i + 6] = replies[i] end
  return answer
end
