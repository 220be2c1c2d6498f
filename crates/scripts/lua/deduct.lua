#!lua
-- deduct: take units from one stock, never below zero
-- KEYS[1] stock     string  rw     units left
-- ARGV[1] quantity  int     units  1..9007199254740991
-- RETURNS n   units left after it, 0 or more
-- RETURNS -1  fewer units left than asked; nothing was taken
-- RETURNS -2  no such key
-- ERRORS BADARG CORRUPT
-- @include numbers
local stock, quantity = KEYS[1], ARGV[1]

local asked, err = argument('quantity', quantity, 1, 9007199254740991)
if not asked then return err end
local left
left, err = stored(stock)
if err then return err end
if not left then return -2 end
if left < asked then return -1 end
return redis.call('DECRBY', stock, quantity)
