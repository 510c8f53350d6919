--[[
  give_back(wallet, hold, amount, free, service): gives a hold's money, or a part of it, or its free slot back to the wallet. Money also
  leaves the spending of the budgets that the hold names, each unless a later period of it has begun. It needs child-state.lua.

  A wallet that is not loaded gets nothing, because its balance will include the money when it is loaded.

  @return whether the wallet needs nothing more; false when it is damaged
]]
local function give_back(wallet, hold, amount, free, service)
  local field, back = 'balance', amount
  if free == '1' then
    field, back = 'free:' .. service, '-1'
  elseif amount == '0' then
    return true
  end
  local loaded = redis.pcall('HEXISTS', wallet, 'balance')
  if loaded == 0 then return true end
  local is_given = loaded == 1 and type(redis.pcall('HINCRBY', wallet, field, back)) == 'number'
  local _, budgets_at = string.find(hold, '\tbudgets=', 1, true)
  if not budgets_at then return is_given end
  for key, taken_from in string.gmatch(string.sub(hold, budgets_at + 1), '([^.,]+)%.(%d+)') do
    local state = redis.pcall('HGET', wallet, key)
    local tokens, ts, spent, period
    if type(state) == 'string' then tokens, ts, spent, period = child_state(state) end
    if not tokens then
      is_given = is_given and not state
    elseif period == tonumber(taken_from) then
      redis.call('HSET', wallet, key, struct.pack(CHILD, tokens, ts, spent - amount, period))
    end
  end
  return is_given
end
