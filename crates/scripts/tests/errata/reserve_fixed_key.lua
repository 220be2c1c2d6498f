local stock = tonumber(redis.call('GET', KEYS[1]))
if stock < tonumber(ARGV[2]) then return -1 end
redis.call('DECRBY', KEYS[1], ARGV[2])
redis.call('HSET', 'reservations', ARGV[1], ARGV[2])
return 1
