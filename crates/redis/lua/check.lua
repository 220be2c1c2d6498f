#!lua flags=allow-oom
-- check: try every command that the scripts use, on a key of its own that is gone afterwards
-- KEYS[1] scratch  any  rw  a name that nothing else has
-- RETURNS {refused...}  the commands that this user may not use, each with the server's words
local scratch = KEYS[1]
local refused = {}
local function try(command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) == 'table' and reply.err then refused[#refused + 1] = command .. ': ' .. reply.err end
end

try('TIME')
try('TYPE', scratch)
try('EXISTS', scratch)
try('HSET', scratch, 'field', 'value')
try('HGET', scratch, 'field')
try('HMGET', scratch, 'field')
try('HGETALL', scratch)
try('HLEN', scratch)
try('HSCAN', scratch, '0')
try('MEMORY', 'USAGE', scratch)
try('HDEL', scratch, 'field')
try('SADD', scratch, 'member')
try('SMEMBERS', scratch)
try('SREM', scratch, 'member')
try('ZADD', scratch, '1', 'member')
try('ZCARD', scratch)
try('ZRANGEBYSCORE', scratch, '-inf', '+inf')
try('ZREM', scratch, 'member')
try('RPUSH', scratch, 'item', 'item')
try('LLEN', scratch)
try('LINDEX', scratch, '0')
try('LRANGE', scratch, '0', '-1')
try('LTRIM', scratch, '1', '-1')
try('LPOP', scratch)
try('XADD', scratch, '1-1', 'field', 'value')
try('XLEN', scratch)
try('XRANGE', scratch, '-', '+')
try('XTRIM', scratch, 'MINID', '=', '1-1')
try('DEL', scratch)
try('UNLINK', scratch)
return refused
