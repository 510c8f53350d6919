--[[
  read-wallet.lua: reads a wallet and what its open holds have taken from it, at one instant.

  KEYS   [1] wallet, [2] open
  ARGV   [1] account id, [2] maximum number of holds to read
  Reply  {balance, held} in micro-USD; {balance} when the shard has more open holds than ARGV[2] (see sum-holds.lua);
         {} when the wallet is not loaded;
         {'damaged'} when its balance is not an integer within 2^53 (see batch.lua). Holds that cannot be read are not counted
]]
local MAX = 9007199254740991
local balance = redis.pcall('HGET', KEYS[1], 'balance')
if not balance then return {} end
local number = tonumber(balance)
if not number or number > MAX or number < -MAX or string.format('%d', number) ~= balance then return { 'damaged' } end
if redis.call('HLEN', KEYS[2]) > tonumber(ARGV[2]) then return { number } end
local held = 0
for _, hold in ipairs(redis.call('HVALS', KEYS[2])) do
  local start = string.sub(hold, 1, 3) == 'v1\t' and 4 or 1
  local amount, account = string.match(hold, '^(%d+)\t[01]\t%d+\t[^\t]*\t([^\t]*)\t[^\t]*\t[^\t]*\t', start)
  if account == ARGV[1] and #amount <= 16 then held = held + tonumber(amount) end
end
return { number, held }
