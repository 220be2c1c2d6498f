-- Matches picks, in the order in which they came, with the lines of a reservation: units and index of each line; nil
-- when any of them is wrong, which the caller then works out in words. Without picks, everything is meant.
local function picked(hold, picks, room, all)
  local lines, found = lines_of(hold), {}
  if not picks then
    for i, line in ipairs(lines) do found[i] = { units = all(line), index = i - 1 } end
    return found
  end
  if #picks == 0 or #picks > 100 then return nil end
  for at, pick in ipairs(picks) do
    local sku, quantity, asked = pick[1], pick[2], pick[3] or ''
    if quantity == 0 or quantity > MAX then return nil end
    local line
    for i, one in ipairs(lines) do
      if one.id == sku and one.asked == asked then line = i end
    end
    if not line then return nil end
    found[line] = found[line] or { units = 0, index = at - 1 }
    found[line].units = found[line].units + quantity
  end
  for i, line in ipairs(lines) do
    found[i] = found[i] or { units = 0, index = 0 }
    if found[i].units > room(line) then return nil end
  end
  return found
end

local function quantity_of(line) return sum_of(line, 'quantity') end
