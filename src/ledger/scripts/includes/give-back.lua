--[[
  give_back(wallet, amount, free, service): gives a hold's money or free slot back to the wallet.

  A wallet that is not loaded gets nothing, because its balance will include the money when it is loaded.

  @return whether the wallet needs nothing more; false when it is damaged
]]
local function give_back(wallet, amount, free, service)
  local field, back = 'balance', amount
  if free == '1' then
    field, back = 'free:' .. service, '-1'
  elseif amount == '0' then
    return true
  end
  local loaded = redis.pcall('HEXISTS', wallet, 'balance')
  if loaded == 0 then return true end
  return loaded == 1 and type(redis.pcall('HINCRBY', wallet, field, back)) == 'number'
end
