#!lua
-- deduct_sold: take units from one stock and count them as sold, with a message for people
-- KEYS[1] stock      string  rw     units left
-- KEYS[2] sold       string  rw     units sold so far; absent is 0
-- ARGV[1] quantity   int     units  1..9007199254740991
-- ARGV[2] language?  word    -      en|zh
-- RETURNS {1, message, left, sold}   done
-- RETURNS {0, message, left, sold}   fewer units left than asked; nothing was taken
-- RETURNS {-1, message}              no such key
-- ERRORS BADARG CORRUPT OVERFLOW
-- @include numbers
local stock, sold = KEYS[1], KEYS[2]
local quantity, language = ARGV[1], ARGV[2] or 'en'

local messages = {
  en = { done = 'deducted', short = 'insufficient stock', absent = 'no such stock' },
  zh = { done = '扣减成功', short = '库存不足', absent = '库存不存在' },
}
local say = messages[language]
if not say then return bad_argument('language', language, 'en or zh') end
local err = apart({ stock, sold }, 2)
if err then return err end
local asked
asked, err = argument('quantity', quantity, 1, 9007199254740991)
if not asked then return err end
local left, count
left, err = stored(stock)
if err then return err end
count, err = stored(sold)
if err then return err end
count = count or 0
if not left then return { -1, say.absent } end
if left < asked then return { 0, say.short, left, count } end
if count > 9007199254740991 - asked then
  return redis.error_reply('OVERFLOW ' .. shown(sold) .. ' would pass 9007199254740991')
end
left = redis.call('DECRBY', stock, quantity)
return { 1, say.done, left, redis.call('INCRBY', sold, quantity) }
