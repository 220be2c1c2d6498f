-- Milliseconds since the epoch by the server's clock, so that callers' clocks do not matter; tests may pass their own.
local function clock(text)
  if text and text ~= '0' then return argument('now', text, 1, 9007199254740991) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
