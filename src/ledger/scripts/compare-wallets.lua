#!lua flags=allow-oom
--[[
  compare-wallets.lua: reads some wallets of a shard, their open holds, the stream of events after what was read of it before, which
  Redis answers and the shard's mark, all at one instant.

  KEYS   [1] open, [2] usage, [3] mark, then the wallets
  ARGV   [1] a ticket to write into each loaded wallet, for repair-wallet.lua; '' writes none
         [2] id of the last entry that was read ('': none yet), [3] its fields, tab separated ('': not compared)
         [4] maximum number of entries in the reply
         then the account of each wallet
  Reply  {now (ms), data id, mark ('' if there is none),
          1 if the entry in [2] is there as it was read, else 0, id of the oldest entry ('' if there is none),
          {entry, …}: those after [2]; if that is not there, those from the oldest on,
          {usage_id, hold, usage_id, hold, …} of these accounts,
          {field, value, …} of each wallet, as in-text.lua has them: empty when it is not loaded, {'balance', ''} when its key is
          not a hash,
          number of holds that are damaged or of another version, whose accounts cannot be known}
]]
--- @include "includes/data-id.lua"
--- @include "includes/in-text.lua"
--- @include "includes/read-hold.lua"
--- @include "includes/unread-entries.lua"
local call = redis.call
local usage = KEYS[2]
local ticket, last, last_fields, most = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local asked, is_any_asked = {}, #ARGV > 4
for i = 5, #ARGV do asked[ARGV[i]] = true end

local holds, n, unread = {}, 0, 0
local open = is_any_asked and call('HGETALL', KEYS[1]) or {}
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

local oldest = call('XRANGE', usage, '-', '+', 'COUNT', 1)[1]
local entries, is_there = unread_entries(usage, last, last_fields, most)
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return { now, data_id(), call('GET', KEYS[3]) or '', is_there and 1 or 0, oldest and oldest[1] or '', entries, holds, wallets, unread }
