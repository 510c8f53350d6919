--[[
  see-shards.lua: reads the marks of some shards, which Redis answers, and whether entries are still in their streams, all at one
  instant.

  KEYS   the mark of each shard, then for each entry its stream
  ARGV   [1] number of shards, then for each entry: its id, its fields, tab separated ('': not compared)
  Reply  {now (ms), data id, 1 if all entries are there as they were read, else 0, mark of each shard ('' if it has none)}
]]
--- @include "includes/data-id.lua"
local call = redis.call
local shards = tonumber(ARGV[1])

local function is_there(i)
  local at = 2 * i
  local entry = call('XRANGE', KEYS[shards + i], ARGV[at], ARGV[at])[1]
  return entry and (ARGV[at + 1] == '' or table.concat(entry[2], '\t') == ARGV[at + 1])
end

local all_there = 1
for i = 1, #KEYS - shards do
  if not is_there(i) then all_there = 0 end
end
local time = call('TIME')
local reply = { time[1] * 1000 + math.floor(time[2] / 1000), data_id(), all_there }
for i = 1, shards do
  local mark = redis.pcall('GET', KEYS[i])
  -- A key of another type is a damaged mark.
  reply[3 + i] = type(mark) == 'table' and '?' or mark or ''
end
return reply
