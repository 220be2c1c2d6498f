local left = tonumber(redis.call('GET', KEYS[1]))
if not left then return -2 end
if left < tonumber(ARGV[1]) then return -1 end
return redis.call('DECRBY', KEYS[1], ARGV[1])
