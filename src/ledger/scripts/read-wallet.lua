--[[
  read-wallet.lua: reads a wallet and what its open holds have taken from it, at one instant.

  KEYS   [1] wallet, [2] open
  ARGV   [1] account id, [2] maximum number of holds to read
  Reply  {balance, held} in micro-USD; {balance} when the shard has more open holds than ARGV[2] (see sum-holds.lua);
         {} when the wallet is not loaded;
         {'damaged'} when its balance is not an integer within 2^53. Holds that cannot be read are not counted
]]
--- @include "includes/read-hold.lua"
--- @include "includes/integer.lua"
local balance = redis.pcall('HGET', KEYS[1], 'balance')
if not balance then return {} end
local number = integer(balance)
if not number then return { 'damaged' } end
if redis.call('HLEN', KEYS[2]) > tonumber(ARGV[2]) then return { number } end
local held = 0
for _, hold in ipairs(redis.call('HVALS', KEYS[2])) do
  local amount, _, _, account = read_hold(hold)
  if account == ARGV[1] then held = held + tonumber(amount) end
end
return { number, held }
