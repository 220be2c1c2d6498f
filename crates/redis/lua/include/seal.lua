-- Seals an id that never came: a cancelled record without lines.
local NOTHING = string.rep('\0', 16)

local function seal(name, actor, reason)
  local hold = {
    name = name, status = 'x', mode = 0, sealed = true, noted = false, digest = NOTHING, granted = AT, ends = clock,
    owner = '', lines = {},
  }
  return turn(hold, 'S', '-', actor, reason)
end
