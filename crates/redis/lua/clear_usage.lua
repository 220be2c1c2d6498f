#!lua flags=allow-oom
-- clear_usage: remove owner usage of a SKU that was damaged, while its marker is there and so nobody decides on it
-- KEYS[1] meta        hash  r   the shard's meta
-- KEYS[2] markers     hash  r   load markers
-- KEYS[3] usage       hash  rw  owner usage
-- ARGV[1] epoch       int   -   1..9007199254740991
-- ARGV[2] name        text  -   the SKU with its tenant
-- ARGV[3] token       text  -   16 hex digits; the marker's
-- ARGV[4..n] fields?  text  -   fields of that SKU, as a scan found them
-- RETURNS cleared  they are gone
-- RETURNS gone     that marker is gone; nothing was changed
-- RETURNS {no_meta} or {damaged} or {epoch, found} or {closed, found}  the shard is another one
-- ERRORS BADARG
-- @include meta
local args = ARGV
local meta_key, markers, usage = KEYS[1], KEYS[2], KEYS[3]
local name, token = args[2], args[3]
local epoch, err = argument('epoch', args[1])
if not epoch then return err end

local meta = meta_at(meta_key)
local no = stale(meta, epoch, true)
if no then return no end
local marker = redis.pcall('HGET', markers, name)
if type(marker) == 'table' or not is_hash(usage) then return { 'damaged' } end
if not marker or marker:sub(1, 25) ~= 'loading ' .. token .. ' ' then return 'gone' end
local prefix = name .. '\30'
for i = 4, #args do
  if args[i]:sub(1, #prefix) == prefix then redis.call('HDEL', usage, args[i]) end
end
return 'cleared'
