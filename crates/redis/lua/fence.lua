#!lua flags=allow-oom
-- fence: close the node under a new epoch, if its own is lower or it has none; nothing else creates meta
-- KEYS[1] meta    hash  rw  the shard's meta
-- KEYS[2] epochs  set   rw  epochs that have keys here
-- ARGV[1] epoch   int   -   1..9007199254740991
-- RETURNS {closed, epoch}   the node is closed under that epoch, and nothing is loaded
-- RETURNS {refused, epoch}  the node is at a newer epoch, or at this one and further on
-- ERRORS BADARG
-- @include meta
local meta_key, epochs_key = KEYS[1], KEYS[2]
local epoch, err = argument('epoch', ARGV[1])
if not epoch then return err end

local meta = meta_at(meta_key)
if meta and meta.epoch > epoch then return { 'refused', meta.epoch } end
if meta and meta.epoch == epoch then
  -- The same fence again, its reply having been lost; once more is loaded, this is somebody who slept.
  if meta.open == 0 and not meta.base_seq and meta.chunks == 0 then return { 'closed', epoch } end
  return { 'refused', epoch }
end
-- What is there in meta's place, or in that of the set, and was not written here, is of no use to anybody.
if redis.call('TYPE', epochs_key).ok ~= 'set' then redis.call('UNLINK', epochs_key) end
redis.call('UNLINK', meta_key)
-- The clock goes on: time does not run back on this node.
redis.call('HSET', meta_key, 'epoch', digits(epoch), 'open', '0', 'chunks', '0', 'count', '0', 'live', '0', 'clock',
  digits(meta and meta.clock or 0))
if meta then redis.call('SADD', epochs_key, digits(meta.epoch)) end
redis.call('SADD', epochs_key, digits(epoch))
return { 'closed', epoch }
