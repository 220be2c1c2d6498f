#!lua flags=allow-oom
-- drop_older: remove keys of older epochs, out of names that a scan found; their outboxes only once this epoch is open
-- KEYS[1] meta     hash  r   the shard's meta
-- KEYS[2] epochs   set   rw  epochs that have keys here
-- KEYS[3..n] keys  any   w   names that begin with the shard's tag
-- ARGV[1] epoch    int   -   1..9007199254740991
-- ARGV[2] last     int   -   1 after the last of the names, else 0
-- RETURNS {done, removed}  so many keys are gone
-- RETURNS {no_meta} or {damaged} or {epoch, found}  the shard is another one
-- ERRORS BADARG
-- @include meta
local keys = KEYS
local epoch, last, err
epoch, err = argument('epoch', ARGV[1])
if not epoch then return err end
last, err = argument('last', ARGV[2])
if not last then return err end

local meta_key, epochs_key = keys[1], keys[2]
local meta = meta_at(meta_key)
local no = stale(meta, epoch, false)
if no then return no end
local start = #string.match(meta_key, '^(.*:)meta$')
local removed = 0
for i = 3, #keys do
  local of, rest = string.match(string.sub(keys[i], start + 1), '^(%d+):(.*)$')
  local older = whole(of)
  -- Until this epoch is open its survivors may have to be read again.
  if older and older < epoch and (meta.open == 1 or rest ~= 'outbox') then
    removed = removed + redis.call('UNLINK', keys[i])
  end
end
if last == 1 and meta.open == 1 then
  local members = redis.pcall('SMEMBERS', epochs_key)
  for _, text in ipairs(members.err and {} or members) do
    local one = whole(text)
    if not one or one < epoch then redis.call('SREM', epochs_key, text) end
  end
end
return { 'done', removed }
