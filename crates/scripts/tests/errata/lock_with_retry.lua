for i = 1, tonumber(ARGV[3]) do
  local got = redis.call('SETNX', KEYS[1], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  if got == 1 then return 1 end
  redis.call('SLEEP', '100')
end
return 0
