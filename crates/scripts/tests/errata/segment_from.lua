for step = 0, #KEYS - 1 do
  local key = KEYS[(tonumber(ARGV[2]) - 1 + step) % #KEYS + 1]
  if tonumber(redis.call('GET', key)) >= tonumber(ARGV[1]) then
    redis.call('DECRBY', key, ARGV[1])
    return 1
  end
end
return -1
