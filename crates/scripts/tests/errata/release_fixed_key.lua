local quantity = redis.call('HGET', 'reservations', ARGV[1])
if not quantity then return 0 end
redis.call('HDEL', 'reservations', ARGV[1])
redis.call('INCRBY', KEYS[1], quantity)
return 1
