local start = redis.call('TIME')
local from = start[1] * 1000000 + start[2]
repeat
  local time = redis.call('TIME')
until time[1] * 1000000 + time[2] > from + tonumber(ARGV[1]) * 1000
redis.call('SET', KEYS[1], 'done')
return 1
