#!lua
-- deduct_cas: take units from one stock if nobody changed it since the caller read its version
-- KEYS[1] stock     string  rw     units left
-- KEYS[2] version   string  rw     counts successful deductions; absent is 0
-- ARGV[1] quantity  int     units  1..9007199254740991
-- ARGV[2] expected  int     count  0..9007199254740990
-- RETURNS n   units left after it, 0 or more; the version is now expected + 1
-- RETURNS -1  fewer units left than asked; nothing was taken
-- RETURNS -2  no such key
-- RETURNS -3  the version is not the expected one
-- ERRORS BADARG CORRUPT
-- @include numbers
local stock, version = KEYS[1], KEYS[2]
local quantity, expected = ARGV[1], ARGV[2]

local err = apart({ stock, version }, 2)
if err then return err end
local asked
asked, err = argument('quantity', quantity, 1, 9007199254740991)
if not asked then return err end
local awaited
awaited, err = argument('expected', expected, 0, 9007199254740990)
if not awaited then return err end
local left, found
left, err = stored(stock)
if err then return err end
found, err = stored(version)
if err then return err end
if not left then return -2 end
if (found or 0) ~= awaited then return -3 end
if left < asked then return -1 end
redis.call('INCRBY', version, '1')
return redis.call('DECRBY', stock, quantity)
