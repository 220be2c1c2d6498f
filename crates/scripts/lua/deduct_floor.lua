#!lua
-- deduct_floor: take units from one stock, never below a floor that the caller names
-- KEYS[1] stock     string  rw     units left; may be below zero where the floor is
-- ARGV[1] quantity  int     units  1..9007199254740991
-- ARGV[2] floor     int     units  -9007199254740991..9007199254740991
-- RETURNS 1   done
-- RETURNS 0   the stock would fall below the floor; nothing was taken
-- RETURNS -1  an argument is not a whole number in its range
-- RETURNS -2  no such key
-- ERRORS CORRUPT
-- @include numbers
local stock, quantity, floor = KEYS[1], ARGV[1], ARGV[2]

local asked = argument('quantity', quantity, 1, 9007199254740991)
local lowest = argument('floor', floor, -9007199254740991, 9007199254740991)
if not asked or not lowest then return -1 end
local left, err = stored(stock)
if err then return err end
if not left then return -2 end
-- Compared without a sum that could leave the range in which doubles are exact.
if left < lowest or left - lowest < asked or left - asked < -9007199254740991 then return 0 end
redis.call('DECRBY', stock, quantity)
return 1
