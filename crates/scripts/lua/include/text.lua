-- An id or another text as an argument: 1..512 bytes of any kind, or nil and the error to return.
local function text_argument(name, text)
  if text and #text >= 1 and #text <= 512 then return text end
  return nil, bad_argument(name, text and (#text .. ' bytes'), 'of 1..512 bytes')
end
