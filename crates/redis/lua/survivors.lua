#!lua flags=allow-oom
-- survivors: entries of older epochs that a fenced node still has, oldest first, a part at a time
-- KEYS[1] meta    hash  r  the shard's meta; TAG:EPOCH:outbox is built from its tag
-- KEYS[2] epochs  set   r  epochs that have keys here
-- ARGV[1] epoch   int   -  1..9007199254740991
-- ARGV[2] older   int   -  0..9007199254740991; the epoch to go on in, or 0 for the first
-- ARGV[3] from    int   -  0..9007199254740991; the entry to go on at
-- ARGV[4] count   int   -  1..100000; the most entries in this reply
-- RETURNS {done, epoch, seq, tag, clock, more, older, from, entries}  whether to ask again, with which epoch and entry
-- RETURNS {no_meta} or {damaged} or {epoch, found}  the shard is another one, or its epochs are not a set
-- ERRORS BADARG
-- @include meta
local meta_key, epochs_key = KEYS[1], KEYS[2]
local epoch, older, from, count, err
epoch, err = argument('epoch', ARGV[1])
if not epoch then return err end
older, err = argument('older', ARGV[2])
if not older then return err end
from, err = argument('from', ARGV[3])
if not from then return err end
count, err = argument('count', ARGV[4])
if not count then return err end

local meta = meta_at(meta_key)
local no = stale(meta, epoch, false)
if no then return no end
local members = redis.pcall('SMEMBERS', epochs_key)
if members.err then return { 'damaged' } end
local epochs = {}
for _, text in ipairs(members) do
  local one = whole(text)
  if one and one < epoch and one >= older then epochs[#epochs + 1] = one end
end
table.sort(epochs)
local found, more, next_older, next_from = {}, 0, 0, 0
local tag = string.match(meta_key, '^(.*):meta$')
for _, one in ipairs(epochs) do
  if #found >= count then
    more, next_older, next_from = 1, one, 0
    break
  end
  local start = one == older and from or 0
  -- Another type in the place of an outbox holds no entries.
  local part = redis.pcall('XRANGE', tag .. ':' .. digits(one) .. ':outbox', digits(one) .. '-' .. digits(start),
    digits(one), 'COUNT', digits(count - #found))
  if not part.err then
    for _, entry in ipairs(part) do found[#found + 1] = entry end
    if #found >= count and #part > 0 then
      local last = whole(string.match(part[#part][1], '-(%d+)$'))
      more, next_older, next_from = 1, one, (last or 0) + 1
      break
    end
  end
end
local state, at_epoch, seq, tip, clock = done(meta)
return { state, at_epoch, seq, tip, clock, more, next_older, next_from, found }
