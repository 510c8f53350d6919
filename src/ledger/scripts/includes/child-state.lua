--[[
  child_state(text): reads what a wallet has of a child key, in the field with the key's id: 32 bytes, written by struct.pack(CHILD, …).
  Four doubles, which are exact up to 2^53: tokens and time (ms) of its bucket, then what it and the keys below it have spent of its
  budget (micro-USD), in which period. Numbers in text cost a call five times as much.

  @return tokens, time, spent, period; nil if spent or period is not an integer within 2^53. Damaged tokens are the caller's to see
]]
local CHILD = '<dddd'
local function child_state(text)
  if #text ~= 32 then return nil end
  local tokens, ts, spent, period = struct.unpack(CHILD, text)
  -- NaN is not equal to itself.
  if spent % 1 == 0 and spent <= 9007199254740991 and spent >= -9007199254740991
    and period % 1 == 0 and period <= 9007199254740991 and period >= 0 then
    return tokens, ts, spent, period
  end
end
