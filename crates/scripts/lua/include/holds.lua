-- Reservations of one stock: a hash field per order, "STATE:QUANTITY:ENDS:LEFT:KEEP", and a sorted set with the moment at
-- which something is to be done about it: its end while it is held, afterwards the moment at which it may be forgotten.
-- States: held, sold, back (released), over (ran out).

-- One order's record as a table, false when unknown, or nil and the error to return.
local function hold_of(orders, order)
  local text = redis.pcall('HGET', orders, order)
  if not text then return false end
  if type(text) == 'string' then
    local state, quantity, ends, left, keep = string.match(text, '^(%a+):(%d+):(%d+):(%d+):(%d+)$')
    if state == 'held' or state == 'sold' or state == 'back' or state == 'over' then
      quantity, ends, left, keep = whole(quantity), whole(ends), whole(left), whole(keep)
      if quantity and ends and left and keep then
        return { state = state, quantity = quantity, ends = ends, left = left, keep = keep }
      end
    end
  end
  return nil, corrupt(orders, text)
end

local function put_hold(orders, ends, order, hold, moment)
  redis.call('HSET', orders, order,
    string.format('%s:%.0f:%.0f:%.0f:%.0f', hold.state, hold.quantity, hold.ends, hold.left, hold.keep))
  redis.call('ZADD', ends, string.format('%.0f', moment), order)
end

-- Reads at most `most` orders whose moment has come, without changing anything: what is to be done, or nil and the error.
local function due_holds(orders, ends, now, most)
  local ids = redis.pcall('ZRANGEBYSCORE', ends, '-inf', string.format('%.0f', now), 'LIMIT', 0, most)
  if ids.err then return nil, corrupt(ends, ids) end
  local due = { units = 0, ran_out = {}, forget = {}, full = #ids == most }
  for _, order in ipairs(ids) do
    local hold, err = hold_of(orders, order)
    if err then return nil, err end
    if hold and hold.state == 'held' then
      due.units = due.units + hold.quantity
      table.insert(due.ran_out, { order, hold })
    else
      table.insert(due.forget, order)
    end
  end
  return due
end

-- Does what due_holds found. The caller lowers the reserved counter by due.units.
local function end_holds(orders, ends, due, now)
  for _, entry in ipairs(due.ran_out) do
    local order, hold = entry[1], entry[2]
    hold.state = 'over'
    put_hold(orders, ends, order, hold, now + hold.keep)
  end
  for _, order in ipairs(due.forget) do
    redis.call('HDEL', orders, order)
    redis.call('ZREM', ends, order)
  end
end

-- The two counters: total and reserved; false without a stock key; nil and the error to return.
local function counters(stock, reserved)
  local total, err = stored(stock)
  if not total then return total, err end
  local held
  held, err = stored(reserved)
  if err then return nil, err end
  if held and held < 0 then return nil, corrupt(reserved, string.format('%.0f', held)) end
  return total, held or 0
end
