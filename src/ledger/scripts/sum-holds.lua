--[[
  sum-holds.lua: reads one page of a shard's open holds, for a reader that adds them up by account and by key.

  KEYS   [1] open
  ARGV   [1] cursor of HSCAN ('0': from the beginning), [2] about how many holds a page has
  Reply  {next cursor ('0': that was the last page), usage_id, account, key, amount (text, micro-USD), usage_id, …}

  A page may repeat a hold of an earlier page (HSCAN does while the hash shrinks): the usage_id is there to count it once. Holds that
  cost nothing, tombstones, and holds that cannot be read are left out.
]]
--- @include "includes/read-hold.lua"
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local reply, n = { page[1] }, 1
local fields = page[2]
for i = 1, #fields, 2 do
  local hold = fields[i + 1]
  local amount, _, _, account, _, key = read_hold(hold)
  if amount and amount ~= '0' then
    reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = fields[i], account, key, amount
    n = n + 4
  end
end
return reply
