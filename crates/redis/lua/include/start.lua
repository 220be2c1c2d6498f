-- What every decision begins with: the shard is there, of this epoch, open (`OPEN` says what is wanted), and untouched;
-- and the time. Nothing is written before `commit`. The script has bound EPOCH, TAG and NOW, its first arguments.
local META, RESERVATIONS, RETURNS, COMMANDS, ENDS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local USAGE, MARKERS, ENDED, OUTBOX = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
-- Keys of SKUs and buckets are built from the tag that all keys of the shard share.
local BASE = string.sub(META, 1, -5) .. EPOCH .. ':'
local MAX = 9007199254740991
local fmt, sub, find, match, gmatch = string.format, string.sub, string.find, string.match, string.gmatch
local concat = table.concat

-- The number that text writes in decimal digits, or nil: strictly, since tonumber takes 0x10, 1e3, nan and " 5".
local function whole(text)
  if not text or #text > 16 or not find(text, '^%d+$') or (sub(text, 1, 1) == '0' and text ~= '0') then return nil end
  local number = tonumber(text)
  if number > MAX then return nil end
  return number
end

local meta = redis.pcall('HMGET', META, 'epoch', 'open', 'seq', 'tag', 'clock', 'forgot', 'count', 'live')
if meta.err then return { 'damaged' } end
if not (meta[1] or meta[2] or meta[3]) then return { 'no_meta' } end
if not whole(meta[1]) then return { 'damaged' } end
if meta[1] ~= EPOCH then return { 'epoch', tonumber(meta[1]) } end
if meta[2] ~= OPEN then return { 'closed', tonumber(meta[1]) } end
local seq, clock, forgot = whole(meta[3]), whole(meta[5]), whole(meta[6])
local count, live, PREV = whole(meta[7]), whole(meta[8] or '0'), meta[4]
if not (seq and clock and forgot and count and live and PREV) then return { 'damaged' } end
if redis.pcall('HLEN', RESERVATIONS) ~= count then return { 'damaged' } end

local last_clock = clock
do
  local now = whole(NOW)
  if not now then
    local time = redis.call('TIME')
    now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  end
  -- Time never runs backwards.
  if now > clock then clock = now end
end
local AT, SEQ = fmt('%.0f', clock), fmt('%.0f', seq + 1)

-- Lua's stack takes some thousand values at a time.
local function put_all(verb, key, list, number)
  for first = 1, number, 4000 do
    redis.call(verb, key, unpack(list, first, math.min(number, first + 3999)))
  end
end

-- Ends a command: with its reply, before anything of it has changed.
local function stop(...) error({ ... }, 0) end

-- Runs one command on the overlay; its reply.
local function guarded(run, ...)
  local fine, reply = pcall(run, ...)
  if not fine and type(reply) ~= 'table' then error(reply, 0) end
  return reply
end

-- The tenant's part of a name: all names of a command have the same.
local function tenant_of(name)
  return match(name, '^.*\31') or ''
end

-- What a script writes beside what `commit` knows of.
local extra

-- The entry being made: head, name, value of each change; which names ended by it, and which came from the ledger.
local effects, effect_count = {}, 0
local ended = { r = {}, x = {}, c = {} }
local brought = { r = {}, x = {}, c = {} }

local function effect(verb, before, actor, reason, name, value)
  effects[effect_count + 1] = verb .. before .. actor .. '\31' .. reason
  effects[effect_count + 2] = name
  effects[effect_count + 3] = value
  effect_count = effect_count + 3
end

local function effect_part(text)
  effect_count = effect_count + 1
  effects[effect_count] = text
end
