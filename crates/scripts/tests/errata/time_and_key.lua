local time = redis.call('TIME')
redis.call('SET', KEYS[1], time[1])
return 1
