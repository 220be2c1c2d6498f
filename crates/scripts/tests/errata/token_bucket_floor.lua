local rate, burst, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local tokens = tonumber(redis.call('HGET', KEYS[1], 'tokens')) or burst
local last = tonumber(redis.call('HGET', KEYS[1], 'last')) or now
tokens = math.min(burst, tokens + math.floor((now - last) / 1000 * rate))
if tokens < 1 then return 0 end
redis.call('HSET', KEYS[1], 'tokens', tokens - 1, 'last', now)
return 1
