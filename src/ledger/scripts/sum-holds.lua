--[[
  sum-holds.lua: reads one page of a shard's open holds, for a reader that adds them up by account.

  KEYS   [1] open
  ARGV   [1] cursor of HSCAN ('0': from the beginning), [2] about how many holds a page has
  Reply  {next cursor ('0': that was the last page), usage_id, account, amount (text, micro-USD), usage_id, account, amount, …}

  A page may repeat a hold of an earlier page (HSCAN does while the hash shrinks): the usage_id is there to count it once. Holds that
  cost nothing, tombstones, and holds that cannot be read (formats: see batch.lua) are left out.
]]
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local reply, n = { page[1] }, 1
local fields = page[2]
for i = 1, #fields, 2 do
  local hold = fields[i + 1]
  local start = string.sub(hold, 1, 3) == 'v1\t' and 4 or 1
  local amount, account = string.match(hold, '^(%d+)\t[01]\t%d+\t[^\t]*\t([^\t]*)\t[^\t]*\t[^\t]*\t', start)
  if amount and amount ~= '0' and #amount <= 16 then
    reply[n + 1], reply[n + 2], reply[n + 3] = fields[i], account, amount
    n = n + 3
  end
end
return reply
