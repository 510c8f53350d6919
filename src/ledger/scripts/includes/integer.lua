--[[
  integer(text): reads a number of a wallet. Both Lua and the gateway are exact up to 2^53 - 1.

  @return the number; nil unless `text` is an integer within 2^53 as Redis writes it
]]
local function integer(text)
  local number = tonumber(text)
  if number and number <= 9007199254740991 and number >= -9007199254740991 and string.format('%d', number) == text then
    return number
  end
end
