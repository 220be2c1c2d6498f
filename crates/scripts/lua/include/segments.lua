-- A stock spread over several keys: KEYS[1] is the order's record, the segments follow.

-- The segment at which this caller starts, 1..count: from the id, so that a retry starts where the first try did, and
-- so that any language can compute it: the first eight hex digits of SHA-1(id), modulo count, plus one.
local function start_segment(caller, count)
  return tonumber(string.sub(redis.sha1hex(caller), 1, 8), 16) % count + 1
end

-- The order's record "STATE:QUANTITY:SEGMENT=TAKEN,...": state, quantity and a list of segment, taken, segment, taken...;
-- false when unknown, or nil and the error to return.
local function parts_at(key)
  local text = redis.pcall('GET', key)
  if not text then return false end
  if type(text) == 'string' then
    local state, quantity, list = string.match(text, '^(%a+):(%d+):([%d=,]+)$')
    quantity = quantity and whole(quantity)
    if quantity and (state == 'done' or state == 'back') then
      local parts = {}
      for segment, taken in string.gmatch(list, '(%d+)=(%d+)') do
        segment, taken = whole(segment), whole(taken)
        if not segment or not taken then return nil, corrupt(key, text) end
        table.insert(parts, segment)
        table.insert(parts, taken)
      end
      if #parts > 0 then return state, quantity, parts end
    end
  end
  return nil, corrupt(key, text)
end

local function remember_parts(key, state, quantity, parts, keep)
  local list = {}
  for i = 1, #parts, 2 do table.insert(list, string.format('%.0f=%.0f', parts[i], parts[i + 1])) end
  redis.call('SET', key, string.format('%s:%.0f:%s', state, quantity, table.concat(list, ',')), 'PX', keep)
end

-- What every segment has (below zero counts as none: a hole in one must not hide what others have) and the sum; or
-- nothing, and the reply to return.
local function segment_counts(keys)
  local counts, sum = {}, 0
  for i = 2, #keys do
    local count, err = stored(keys[i])
    if err then return nil, err end
    if count == false then return nil, { -2, i - 1 } end
    counts[i - 1] = math.max(0, count)
    sum = math.min(9007199254740991, sum + counts[i - 1])
  end
  return counts, sum
end

-- The reply for an order that is known already.
local function parts_reply(state, quantity, parts, asked)
  if quantity ~= asked then return { -4, 0 } end
  if state == 'back' then return { -6, 0 } end
  local reply = { 1, 1 }
  for _, number in ipairs(parts) do table.insert(reply, number) end
  return reply
end
