#!lua flags=allow-oom
--[[
  compare-wallets.lua: reads some wallets of a shard, their open holds, where the stream of events begins and ends, and the shard's
  mark, all at one instant.

  KEYS   [1] open, [2] usage, [3] mark, then the wallets
  ARGV   [1] a ticket to write into each loaded wallet, for repair-wallet.lua and drop-wallets.lua; '' writes none
         then the account of each wallet
  Reply  {now (ms), ids of the oldest and the youngest stream entry ('' and '' if there is none),
          {usage_id, hold, usage_id, hold, …} of these accounts,
          {field, value, …} of each wallet, as in-text.lua has them: empty when it is not loaded, {'balance', ''} when its key is
          not a hash,
          number of holds that are damaged or of another version, whose accounts cannot be known,
          mark ('' if there is none)}
]]
--- @include "includes/in-text.lua"
--- @include "includes/read-hold.lua"
local call = redis.call
local ticket = ARGV[1]
local asked = {}
for i = 2, #ARGV do asked[ARGV[i]] = true end

local holds, n, unread = {}, 0, 0
local open = call('HGETALL', KEYS[1])
for i = 1, #open, 2 do
  local hold = open[i + 1]
  local amount, _, _, account = read_hold(hold)
  if not amount then
    -- A tombstone has no account and no money, so it is not counted.
    if string.sub(hold, 1, 2) ~= 'x\t' then unread = unread + 1 end
  elseif asked[account] then
    holds[n + 1], holds[n + 2] = open[i], open[i + 1]
    n = n + 2
  end
end

local wallets = {}
for i = 4, #KEYS do
  local fields = redis.pcall('HGETALL', KEYS[i])
  if fields.err then fields = { 'balance', '' }
  elseif ticket ~= '' and #fields > 0 then call('HSET', KEYS[i], 'ticket', ticket) end
  in_text(fields)
  wallets[i - 3] = fields
end
local oldest = call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
local youngest = call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return { now, oldest and oldest[1] or '', youngest and youngest[1] or '', holds, wallets, unread, call('GET', KEYS[3]) or '' }
