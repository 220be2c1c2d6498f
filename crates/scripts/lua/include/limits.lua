-- The ms that have passed since `at`, and the moment to count from. A clock that stepped back a little brings nothing
-- new and is waited for; one that stepped back by more than `most` must not lock anybody out, so counting begins anew.
local function since(at, now, most)
  if at <= now then return now - at, at end
  if at - now <= most then return 0, at end
  return 0, now
end

-- A hash field as a whole number of 0 or more, false without it, or nil and the error to return.
local function field(key, name)
  local text = redis.pcall('HGET', key, name)
  if not text then return false end
  local number = type(text) == 'string' and whole(text)
  if number and number >= 0 then return number end
  return nil, corrupt(key, text)
end
