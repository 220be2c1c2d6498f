-- Whether an item is in this worker's hands: claimed as often as the worker's claim says, and not acknowledged since.
-- Nil and the error to return when a key holds another type.
local function in_hands(items, tries, id, attempt)
  local known = redis.pcall('HEXISTS', items, id)
  if type(known) == 'table' then return nil, corrupt(items, known) end
  local count = redis.pcall('HGET', tries, id)
  if type(count) == 'table' then return nil, corrupt(tries, count) end
  return known == 1 and count == attempt
end
