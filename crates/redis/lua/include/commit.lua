-- The end of every decision, with what it answers in `replies`: the entry first, then the writes, whose types were all
-- seen before. Where a key is of another type than it should be, the shard is damaged, and nothing is written.
local fresh = {}
for second, names in pairs(buckets) do
  if #names == 0 then
    buckets[second] = nil
  else
    local length = redis.pcall('LLEN', BASE .. 'end:' .. fmt('%.0f', second))
    if type(length) ~= 'number' then return { 'damaged' } end
    if length == 0 then fresh[#fresh + 1] = second end
  end
end
if #fresh > 0 and type(redis.pcall('ZCARD', ENDS)) ~= 'number' then return { 'damaged' } end
if #ended.r + #ended.x + #ended.c + #brought.r + #brought.x + #brought.c > 0
  and type(redis.pcall('LLEN', ENDED)) ~= 'number' then
  return { 'damaged' }
end

local wrote = 0
if effect_count > 0 then
  local parts, n = { '1', AT, fmt('%.0f', #touched) }, 3
  for _, place in ipairs(touched) do
    place.text = text_of(place)
    parts[n + 1], parts[n + 2], parts[n + 3], parts[n + 4] = place.name, place.location, place.raw or '', place.text
    n = n + 4
  end
  -- FS between all parts: the last one before the changes is empty.
  parts[n + 1] = ''
  local added = redis.pcall('XADD', OUTBOX, EPOCH .. '-' .. SEQ, 'tag', TAG, 'prev', PREV, 'e',
    concat(parts, '\28') .. concat(effects, '\28', 1, effect_count))
  if type(added) ~= 'string' then return { 'damaged' } end
  seq, PREV, wrote = seq + 1, TAG, 1
  redis.call('HSET', META, 'seq', SEQ, 'tag', TAG, 'clock', AT, 'count', fmt('%.0f', count), 'live', fmt('%.0f', live))
elseif hset_count > 0 or clock > last_clock then
  redis.call('HSET', META, 'clock', AT, 'count', fmt('%.0f', count))
end
if hset_count > 0 then put_all('HSET', RESERVATIONS, hset, hset_count) end
for second in pairs(due.gone) do
  if not buckets[tonumber(second)] then
    redis.call('DEL', BASE .. 'end:' .. second)
    redis.call('ZREM', ENDS, second)
  end
end
for second, length in pairs(due.trims) do
  if length > 0 then redis.call('LTRIM', BASE .. 'end:' .. second, fmt('%.0f', length), '-1') end
end
for second, names in pairs(buckets) do put_all('RPUSH', BASE .. 'end:' .. fmt('%.0f', second), names, #names) end
for _, second in ipairs(fresh) do
  local text = fmt('%.0f', second)
  redis.call('ZADD', ENDS, text, text)
end
for _, place in ipairs(touched) do
  local sku = place.sku
  if not (sku and (sku.rewritten or sku.dropped)) then
    redis.call('HSET', place.key, 'location:' .. place.location, place.text or text_of(place))
  end
end
for sku in pairs(changed_skus) do
  redis.call('DEL', sku.key)
  if not sku.dropped then redis.call('HSET', sku.key, unpack(fields_of(sku))) end
end
for usage in pairs(changed_usages) do
  if usage.used > 0 then
    redis.call('HSET', USAGE, usage.field, fmt('%.0f:%.0f', usage.era, usage.used))
  elseif usage.stored then
    redis.call('HDEL', USAGE, usage.field)
  end
end
for round = 1, 2 do
  local own = round == 1 and SEQ or fmt('%.0f', forgot)
  for kind, names in pairs(round == 1 and ended or brought) do
    if #names > 0 then
      redis.call('RPUSH', ENDED, kind .. AT .. '\31' .. own .. '\30' .. concat(names, '\30'))
    end
  end
end
if extra then extra() end
local answer = { 'done', tonumber(EPOCH), seq, PREV, clock, wrote }
for i = 1, #replies do answer[i + 6] = replies[i] end
return answer
