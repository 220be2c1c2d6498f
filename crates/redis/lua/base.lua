#!lua
-- base: set where a fenced epoch starts, which is where the ledger stands
-- KEYS[1] meta   hash  rw  the shard's meta
-- ARGV[1] epoch  int   -   1..9007199254740991
-- ARGV[2] seq    int   -   0..9007199254740991; the ledger's cursor
-- ARGV[3] tag    text  -   16 hex digits; the tag of that entry
-- ARGV[4] clock  int   ms  0..9007199254740991; the ledger's time
-- RETURNS set    the epoch starts there
-- RETURNS other  it starts elsewhere, or something is loaded already
-- RETURNS {no_meta} or {damaged} or {epoch, found}  the shard is another one
-- ERRORS BADARG
-- @include meta
local meta_key, tag = KEYS[1], ARGV[3]
local epoch, seq, clock, err
epoch, err = argument('epoch', ARGV[1])
if not epoch then return err end
seq, err = argument('seq', ARGV[2])
if not seq then return err end
clock, err = argument('clock', ARGV[4])
if not clock then return err end

local meta = meta_at(meta_key)
local no = stale(meta, epoch, false)
if no then return no end
if meta.base_seq then
  -- Said again: only the same words get a yes, and they change nothing, wherever the epoch is by now.
  local started = redis.call('HMGET', meta_key, 'start_seq', 'start_tag')
  if started[1] == digits(seq) and started[2] == tag then return 'set' end
  return 'other'
end
if meta.open ~= 0 or meta.chunks ~= 0 then return 'other' end
redis.call('HSET', meta_key, 'seq', digits(seq), 'tag', tag, 'base_seq', digits(seq), 'base_tag', tag, 'start_seq',
  digits(seq), 'start_tag', tag, 'forgot', digits(seq), 'clock', digits(math.max(clock, meta.clock)))
return 'set'
