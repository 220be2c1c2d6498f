#!lua
-- deduct_many: take units from several stocks, all or nothing; a stock named twice is asked for the sum
-- KEYS[1..n] stocks      string  rw     units left; 1..1000 keys
-- ARGV[1..n] quantities  int     units  1..9007199254740991
-- RETURNS {1, left...}                     done; what each stock has now, in the order of the keys
-- RETURNS {-1, position, asked, available}  the first stock with fewer units than asked of it; nothing was taken
-- RETURNS {-2, position}                    the first key that is not there; nothing was taken
-- ERRORS BADARG CORRUPT
-- @include numbers
local stocks, quantities = KEYS, ARGV

local count = #stocks
if count < 1 or count > 1000 or #quantities ~= count then
  return bad_argument('keys', string.format('%d keys, %d quantities', count, #quantities), '1..1000, with a quantity each')
end
local asked, sums = {}, {}
for i = 1, count do
  local err
  asked[i], err = argument(string.format('quantities[%d]', i), quantities[i], 1, 9007199254740991)
  if not asked[i] then return err end
  -- A sum past the range is more than any stock holds; it only has to stay comparable.
  sums[stocks[i]] = math.min(9007199254740991 * 2, (sums[stocks[i]] or 0) + asked[i])
end
local left, short, absent = {}, nil, nil
for i = 1, count do
  local stock = stocks[i]
  if left[stock] == nil then
    local err
    left[stock], err = stored(stock)
    if err then return err end
    if left[stock] == false then
      absent = absent or { -2, i }
    elseif left[stock] < sums[stock] then
      short = short or { -1, i, math.min(9007199254740991, sums[stock]), left[stock] }
    end
  end
end
if absent or short then return absent or short end
local reply = { 1 }
for i = 1, count do redis.call('DECRBY', stocks[i], quantities[i]) end
for i = 1, count do reply[i + 1] = left[stocks[i]] - sums[stocks[i]] end
return reply
