#!lua
-- deduct: take units from one stock, never below zero
-- KEYS[1] stock     string  rw     units left
-- ARGV[1] quantity  int     units  1..9007199254740991
-- RETURNS n   units left after it, 0 or more
-- RETURNS -1  fewer units left than asked; nothing was taken
-- RETURNS -2  no such key
-- ERRORS BADARG CORRUPT
local stock, quantity = KEYS[1], ARGV[1]

-- The fast way. DECRBY is as strict as we are about how a number is written, and it is the only write: so it may judge,
-- and the readers below, which cost half as much again, are only needed to say what is wrong.
local call = redis.pcall
local left, asked, refused = tonumber(call('GET', stock)), tonumber(quantity), nil
if left and asked and asked >= 1 and asked <= left and left <= 9007199254740991 then
  refused = call('DECRBY', stock, quantity)
  if refused == left - asked then return refused end
end

-- @include numbers
local err
asked, err = argument('quantity', quantity, 1, 9007199254740991)
if not asked then return err end
left, err = stored(stock)
if err then return err end
if not left then return -2 end
if left < asked then return -1 end
return refused
