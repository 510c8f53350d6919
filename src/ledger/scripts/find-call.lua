--[[
  find-call.lua: reads one page of a shard's open holds, or of its stream, and tells whether a call of a service is among them that
  another account than its provider made.

  KEYS   [1] open or usage
  ARGV   [1] service, [2] its provider's account, [3] 'open' or 'usage', [4] where the page begins ('0': with the first): the cursor of
         HSCAN, or the id of the entry before it, [5] about how many entries a page has
  Reply  {1: found or 0, where the next page begins ('0': that was the last page)}

  A hold that cannot be read counts if it names the service.
]]
--- @include "includes/read-hold.lua"
local service, provider = ARGV[1], ARGV[2]
local named = '\t' .. service .. '\t'

local function is_call(hold)
  if not string.find(hold, named, 1, true) then return false end
  local amount, _, _, account, called = read_hold(hold)
  return not amount or (called == service and account ~= provider)
end

if ARGV[3] == 'open' then
  local page = redis.call('HSCAN', KEYS[1], ARGV[4], 'COUNT', ARGV[5])
  for i = 2, #page[2], 2 do
    if is_call(page[2][i]) then return { 1, '0' } end
  end
  return { 0, page[1] }
end

local entries = redis.call('XRANGE', KEYS[1], '(' .. ARGV[4], '+', 'COUNT', ARGV[5])
for _, entry in ipairs(entries) do
  -- An event is the usage id, the hold, and the settlement.
  local event = entry[2][2]
  if is_call(string.match(event, '^[^\t]*\t(.*)$') or event) then return { 1, '0' } end
end
local last = entries[#entries]
return { 0, last and last[1] or '0' }
