-- What a key remembers about one order: "done:QUANTITY:ANSWER" or, once given back, "back:QUANTITY:ANSWER".

-- State, quantity and first answer; false without such a key; nil and the error to return.
local function order_at(key)
  local text = redis.pcall('GET', key)
  if not text then return false end
  if type(text) == 'string' then
    local state, quantity, answer = string.match(text, '^(%a+):(%d+):(%d+)$')
    quantity, answer = quantity and whole(quantity), answer and whole(answer)
    if quantity and answer and (state == 'done' or state == 'back') then return state, quantity, answer end
  end
  return nil, corrupt(key, text)
end

local function remember(key, state, quantity, answer, keep)
  redis.call('SET', key, string.format('%s:%.0f:%.0f', state, quantity, answer), 'PX', keep)
end
