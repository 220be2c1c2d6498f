-- What a sale remembers: per user how often, per order "STATE:LEFT:TIMES:USER".

local function sale_of(orders, order)
  local text = redis.pcall('HGET', orders, order)
  if not text then return false end
  if type(text) == 'string' then
    local state, left, times, user = string.match(text, '^(%a+):(%d+):(%d+):(.+)$')
    left, times = left and whole(left), times and whole(times)
    if left and times and (state == 'sold' or state == 'back') then
      return { state = state, left = left, times = times, user = user }
    end
  end
  return nil, corrupt(orders, text)
end

local function put_sale(orders, order, sale)
  redis.call('HSET', orders, order, string.format('%s:%.0f:%.0f:', sale.state, sale.left, sale.times) .. sale.user)
end

local function times_of(buyers, user)
  local text = redis.pcall('HGET', buyers, user)
  if not text then return 0 end
  local times = type(text) == 'string' and whole(text)
  if times and times >= 0 then return times end
  return nil, corrupt(buyers, text)
end
