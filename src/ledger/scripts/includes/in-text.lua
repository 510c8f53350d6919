--[[
  in_text(fields): writes the fields of child keys (child-state.lua) as text, for readers outside Redis: four numbers, separated by
  spaces. It is exact: different bytes are different texts. What does not have their length is left as it is.

  @param fields  names and values of a wallet by turns; changed
]]
local function in_text(fields)
  for i = 1, #fields, 2 do
    local value = fields[i + 1]
    if string.sub(fields[i], 1, 4) == 'acf_' and #value == 32 then
      fields[i + 1] = string.format('%.17g %.17g %.17g %.17g', struct.unpack('<dddd', value))
    end
  end
end
