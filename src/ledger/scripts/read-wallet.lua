--[[
  read-wallet.lua: a wallet and what its open holds have taken from it, at one instant.

  KEYS   [1] wallet, [2] open
  ARGV   [1] account id
  Reply  {balance, held} in micro-USD, or {} when the wallet is not loaded
]]
local balance = redis.call('HGET', KEYS[1], 'balance')
if not balance then return {} end
local held = 0
for _, hold in ipairs(redis.call('HVALS', KEYS[2])) do
  local amount, account = string.match(hold, '^(%d+)\t%d\t%d+\t[^\t]*\t([^\t]*)')
  if account == ARGV[1] then held = held + tonumber(amount) end
end
return { tonumber(balance), held }
