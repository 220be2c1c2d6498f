-- Ends that have come, freed where an answer depends on them: a bounded number a call, earliest first.
local FREED_MAX, LOOKED_MAX, CHUNK, SECONDS_MAX = 128, 2048, 256, 200
-- Of the second that is running, so many are looked at; those behind them when it has passed, or those before have ended.
local RUNNING_MAX = 2048
local freed, looked = 0, 0
local EXPIRED = 'Ppstockade\31'

-- A reservation that is damaged, or whose SKU is damaged or not held, cannot be ended now: it is looked at again a second later.
local function postpone(name, reply)
  to_bucket(name, second_of(clock) + 1)
  for i = 2, #reply do
    if reply[1] == 'missing' then due.unheld[reply[i]] = true end
  end
end

-- Reads on in the bucket that comes first, or in the next one; false when nothing more is due now.
local function next_chunk()
  if due.over then return false end
  if not due.seconds then
    local last = fmt('%.0f', second_of(clock))
    due.seconds = redis.pcall('ZRANGEBYSCORE', ENDS, '-inf', last, 'LIMIT', '0', fmt('%.0f', SECONDS_MAX))
    if due.seconds.err then corrupt(ENDS, '', due.seconds.err) end
    due.at, due.from = 1, 0
  end
  local second = due.seconds[due.at]
  if not second then
    due.over = #due.seconds < SECONDS_MAX
    return false
  end
  local key = BASE .. 'end:' .. second
  local names = redis.pcall('LRANGE', key, fmt('%.0f', due.from), fmt('%.0f', due.from + CHUNK - 1))
  if names.err then corrupt(key, '', names.err) end
  local unread = {}
  for _, name in ipairs(names) do
    if holds[name] == nil then unread[#unread + 1] = name end
  end
  fetch(unread)
  local past = tonumber(second) * 1000 <= clock
  if past then looked = looked + #names end
  local list, front = {}, true
  local leading = 0
  for i, name in ipairs(names) do
    local packed = holds[name]
    local waiting = false
    if packed and sub(packed, 1, 1) == 'p' then
      local fine, hold = pcall(head_of, name, packed)
      if not fine then
        postpone(name, hold)
      elseif second_of(hold.ends) <= tonumber(second) then
        -- Not one that was extended: that stands in a later bucket, too.
        if hold.ends <= clock then
          list[#list + 1] = { hold.ends, i, name }
        else
          waiting = not past
        end
      end
    end
    if waiting then front = false end
    if front then leading = i end
  end
  table.sort(list, function(a, b)
    if a[1] ~= b[1] then return a[1] < b[1] end
    return a[2] < b[2]
  end)
  due.list, due.pos = list, 1
  local full = #names == CHUNK
  due.done = function()
    if past and not full then
      due.gone[second], due.trims[second] = true, nil
    elseif due.from == 0 or due.trims[second] == due.from then
      -- Everything up to here has been dealt with; of a bucket that is not yet past, what stands at its front.
      due.trims[second] = due.from + (past and #names or leading)
    end
  end
  due.step = function()
    if full and (past or due.from + CHUNK < RUNNING_MAX) then
      due.from = due.from + CHUNK
    else
      due.at, due.from = due.at + 1, 0
    end
  end
  return true
end

-- Ends up to `limit` due reservations; how many.
local function end_due(limit)
  local number = 0
  while number < limit do
    local item = due.list[due.pos]
    if item then
      due.pos = due.pos + 1
      local name = item[3]
      -- A command of this call may have ended or moved it.
      if plain_turn(name, holds[name], 'e', EXPIRED) then
        number = number + 1
      else
        local hold = head_of(name, holds[name])
        if hold.status == 'p' and hold.ends <= clock then
          local fine, reply = pcall(expire, hold)
          if fine then
            number = number + 1
          elseif type(reply) == 'table' then
            postpone(name, reply)
          else
            error(reply, 0)
          end
        end
      end
    else
      if due.done then
        due.done()
        due.done = nil
        due.step()
      end
      due.list, due.pos = {}, 1
      if looked >= LOOKED_MAX or not next_chunk() then break end
    end
  end
  if due.done and not due.list[due.pos] then
    due.done()
    due.done = nil
    due.step()
    due.list, due.pos = {}, 1
  end
  return number
end

local function more_due()
  return due.list[due.pos] ~= nil or not due.over
end

-- Ends some for an answer that depends on them. `again` when this call has done as much of that as it may.
local function free_due(limit)
  local room = FREED_MAX - freed
  local number = end_due(math.min(limit, room))
  freed = freed + number
  if number == 0 and more_due() then stop('again') end
  return number
end

local function free_all_due()
  while free_due(FREED_MAX) > 0 do end
end
