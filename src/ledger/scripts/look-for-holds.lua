--[[
  look-for-holds.lua: tells in which shards a sweep has anything to do, so that a round over idle shards is one command. It changes
  nothing. When in doubt it names the shard: the sweep looks closely there.

  KEYS   for each shard: open, lease
  ARGV   [1] maximum age of a tombstone (ms), [2] age from which a lease is forgotten (ms)
  Reply  {now (ms), data id, index of each shard with something to do (0: the first)}
]]
--- @include "includes/data-id.lua"
local call, pcall = redis.call, redis.pcall
local tombstone_ms, forget_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Whether `open` has nothing but the tombstone that belongs to no call ('kept'), and a live gateway has renewed that lately.
local function is_quiet(open)
  local count = pcall('HLEN', open)
  if count == 0 then return true end
  if count ~= 1 then return false end
  local since = string.match(call('HGET', open, 'kept') or '', '^x\t\t(%d+)\t')
  return since and now - tonumber(since) <= tombstone_ms
end

local function has_old(lease)
  local leases = pcall('HGETALL', lease)
  if leases.err then return true end
  for i = 2, #leases, 2 do
    local seen = tonumber(leases[i])
    if seen and now - seen > forget_ms then return true end
  end
  return false
end

local reply = { now, data_id() }
for i = 1, #KEYS, 2 do
  if not is_quiet(KEYS[i]) or has_old(KEYS[i + 1]) then reply[#reply + 1] = (i - 1) / 2 end
end
return reply
