#!lua flags=allow-oom
-- sweep: ends reservations whose end has passed, so many a call
-- KEYS[1] meta          hash    rw  the shard: epoch, open, tip, clock, counts
-- KEYS[2] reservations  hash    rw  every reservation that is held
-- KEYS[3] returns       hash    rw  every return that is held
-- KEYS[4] commands      hash    rw  every stock command that is held
-- KEYS[5] ends          zset    rw  seconds with ends; their lists are end:SECOND beside it
-- KEYS[6] usage         hash    rw  owner usage of tracked SKUs
-- KEYS[7] markers       hash    rw  SKUs that are being loaded or that nobody knows
-- KEYS[8] ended         list    rw  what may be forgotten, oldest first
-- KEYS[9] outbox        stream  rw  entries; SKUs are hashes sku:NAME beside it
-- ARGV[1] epoch   int   -   1..9007199254740991, as the ledger has it
-- ARGV[2] tag     text  -   16 hex digits, new for every send
-- ARGV[3] now     int   ms  0..9007199254740991; nothing is the clock of the server
-- ARGV[4] limit   int   -   1..9007199254740991
-- RETURNS {done, epoch, seq, tag, clock, wrote, replies...}  the tip after it; whether an entry was made
-- RETURNS {no_meta} or {damaged} or {epoch, found} or {closed, found}  the shard is another one
local EPOCH, TAG, NOW, LIMIT = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local OPEN = '1'
-- @include start
-- @include light
-- @include skus
-- @include holds
-- @include due
-- The replies: how many were ended, 1 if more are due, the lag in ms, how many live ones are left; then SKUs that were
-- not held, whose reservations wait.
local fine, number = pcall(end_due, tonumber(LIMIT))
if not fine then
  if type(number) ~= 'table' then error(number, 0) end
  return { 'damaged' }
end
local more = more_due()
local lag = 0
if more then
  local item = due.list[due.pos]
  local second = due.seconds and due.seconds[due.at]
  if item then
    lag = clock - item[1]
  elseif second then
    lag = math.max(0, clock - tonumber(second) * 1000)
  end
end
local replies = { number, more and 1 or 0, lag, live }
for name in pairs(due.unheld) do replies[#replies + 1] = name end
-- @include commit
