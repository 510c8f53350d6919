--[[
  compare-wallets.lua: some wallets of a shard, what open holds have taken from them, and where the stream begins and
  ends: all at one instant.

  KEYS   [1] open, [2] usage, then the wallets
  ARGV   [1] a ticket to leave in each loaded wallet for repair-wallet.lua; '' leaves none
         then the account of each wallet
  Reply  {now (ms), ids of the oldest and the youngest stream entry or '' and '', {usage_id, hold, usage_id, hold, …} of these accounts,
          {field, value, …} of each wallet, empty when it is not loaded}
]]
local call = redis.call
local ticket = ARGV[1]
local asked = {}
for i = 2, #ARGV do asked[ARGV[i]] = true end

local holds, n = {}, 0
local open = call('HGETALL', KEYS[1])
for i = 1, #open, 2 do
  -- A tombstone has no account and holds nothing.
  local account = string.match(open[i + 1], '^%d+\t%d\t%d+\t[^\t]*\t([^\t]*)')
  if account and asked[account] then
    holds[n + 1], holds[n + 2] = open[i], open[i + 1]
    n = n + 2
  end
end

local wallets = {}
for i = 3, #KEYS do
  wallets[i - 2] = call('HGETALL', KEYS[i])
  if ticket ~= '' and #wallets[i - 2] > 0 then call('HSET', KEYS[i], 'ticket', ticket) end
end
local oldest = call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
local youngest = call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return { now, oldest and oldest[1] or '', youngest and youngest[1] or '', holds, wallets }
