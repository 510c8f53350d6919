--[[
  read-wallet.lua: reads a wallet, what its open holds have taken from it, and what budgets have spent, at one instant.

  KEYS   [1] wallet, [2] open
  ARGV   [1] account id, [2] maximum number of holds to read, [3] ids of the keys whose holds count, separated by spaces; '': all,
         then the ids of keys with a budget
  Reply  {balance, held, now (ms), and for each key with a budget what it has spent (text) and the number of its period (text)}:
         micro-USD, 0 and 0 where the wallet does not have it. `held` is -1 when the shard has more open holds than ARGV[2] (see
         sum-holds.lua);
         {} when the wallet is not loaded;
         {'damaged'} when its balance, or a number of these budgets, is not an integer within 2^53. Holds that cannot be read are
         not counted
]]
--- @include "includes/read-hold.lua"
--- @include "includes/integer.lua"
--- @include "includes/child-state.lua"
local balance = redis.pcall('HGET', KEYS[1], 'balance')
if not balance then return {} end
local number = integer(balance)
if not number then return { 'damaged' } end
local counted = {}
for key in string.gmatch(ARGV[3], '[^ ]+') do counted[key] = true end
local held = 0
if redis.call('HLEN', KEYS[2]) > tonumber(ARGV[2]) then
  held = -1
else
  for _, hold in ipairs(redis.call('HVALS', KEYS[2])) do
    local amount, _, _, account, _, key = read_hold(hold)
    if account == ARGV[1] and (ARGV[3] == '' or counted[key]) then held = held + tonumber(amount) end
  end
end
local time = redis.call('TIME')
local reply = { number, held, time[1] * 1000 + math.floor(time[2] / 1000) }
for i = 4, #ARGV do
  local state = redis.call('HGET', KEYS[1], ARGV[i])
  local tokens, _, spent, period = nil, nil, 0, 0
  if state then tokens, _, spent, period = child_state(state) end
  if state and not tokens then return { 'damaged' } end
  reply[#reply + 1], reply[#reply + 2] = string.format('%d', spent), string.format('%d', period)
end
return reply
