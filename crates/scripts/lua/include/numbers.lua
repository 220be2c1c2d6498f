-- Numbers, read strictly. tonumber takes 0x10, 1e3, nan and " 5"; DECRBY takes none of them, and neither do we.

-- The whole number that text writes in decimal digits, or nil: no blank, no plus, no leading zero, no fraction, no
-- exponent, nothing beyond 2^53-1, past which a double no longer tells neighbours apart.
local function whole(text)
  if text ~= '0' and (#text > 17 or not string.find(text, '^%-?[1-9]%d*$')) then return nil end
  local number = tonumber(text)
  if number > 9007199254740991 or number < -9007199254740991 then return nil end
  return number
end

-- Somebody's text inside a message: cut, and without control characters.
local function shown(text)
  return '"' .. string.gsub(string.sub(text, 1, 200), '%c', '?') .. '"'
end

local function bad_argument(name, text, allowed)
  return redis.error_reply('BADARG ' .. name .. ' must be ' .. allowed .. ', found ' .. shown(text or ''))
end

-- An argument as a number within low..high, or nil and the error to return.
local function argument(name, text, low, high)
  local number = text and whole(text)
  if number and number >= low and number <= high then return number end
  return nil, bad_argument(name, text, string.format('a whole number in %.0f..%.0f', low, high))
end

-- The error for a key that holds what no script here wrote.
local function corrupt(key, found)
  local what = 'holds another type'
  if type(found) == 'string' then
    what = 'holds ' .. shown(found)
  elseif type(found) == 'table' and found.err and not string.find(found.err, 'WRONGTYPE', 1, true) then
    return found
  end
  return redis.error_reply('CORRUPT ' .. shown(key) .. ' ' .. what)
end

-- The number stored at key, false without such a key, or nil and the error to return.
local function stored(key)
  local text = redis.pcall('GET', key)
  if not text then return false end
  local number = type(text) == 'string' and whole(text)
  if number then return number end
  return nil, corrupt(key, text)
end

-- The error when one of the keys is missing or given twice, or nothing. A key that takes two parts would be caught by the
-- second write, after the first.
local function apart(keys, count)
  local seen = {}
  for i = 1, count do
    local key = keys[i]
    if not key then return bad_argument('keys', tostring(i - 1), string.format('%d', count)) end
    if seen[key] then return bad_argument('keys', key, 'different keys') end
    seen[key] = true
  end
end

-- The error for a key of another type than the one expected, or nothing.
local function wrong_type(key, expected)
  local found = redis.call('TYPE', key)
  found = found.ok or found
  if found ~= 'none' and found ~= expected then return corrupt(key, false) end
end
