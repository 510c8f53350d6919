#!lua flags=allow-oom
--[[
  sweep.lua: settles holds of gateways that died. Safe to run anywhere, any number of times: a hold is given back only
  while its instance's lease is older than the bound, and removing the hold is the permission to act.

  KEYS   [1] open, [2] lease, [3] usage, then the wallet of each candidate
  ARGV   [1] lease bound (ms), [2] tombstone bound (ms), [3] settlement of a swept call, [4] time of the judgement by
         Redis's clock (ms), [5] the only Redis process (run_id) to do it in, or '', then usage_id of each candidate
  Reply  {number of holds swept, usage_id of each whose wallet is damaged: it was swept, and the wallet got nothing back}

  A hold that is damaged, or of a newer version, is left alone (formats: see batch.lua). Where a stream refuses the event nothing
  of that hold is changed, and the script ends with the error.

  An instance without a lease is not dead yet: Redis may have come back without its leases while the gateway lives. It is
  given one now, and is swept when that runs out.

  Leases are judged as of [4], not as of now: should everything have slept between the sweeper's look and this script,
  the living were as asleep as it was. [5] is for the same reason: a Redis that restarted since has other holds, and one that
  is older than Postgres has some of stored calls.
]]
local call = redis.call
local open, lease, usage = KEYS[1], KEYS[2], KEYS[3]
local lease_ms, tombstone_ms, settlement = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local judged_at = math.min(now, tonumber(ARGV[4]))
local reply = { 0 }

if ARGV[5] ~= '' and not string.find(call('INFO', 'server'), 'run_id:' .. ARGV[5], 1, true) then return reply end

-- @return whether the wallet has back what the hold took, or will be loaded with it
local function give_back(wallet, amount, free, service)
  local field, back = 'balance', amount
  if free == '1' then
    field, back = 'free:' .. service, '-1'
  elseif amount == '0' then
    return true
  end
  local loaded = redis.pcall('HEXISTS', wallet, 'balance')
  if loaded == 0 then return true end
  return loaded == 1 and type(redis.pcall('HINCRBY', wallet, field, back)) == 'number'
end

-- A lease that cannot be read counts as none, and so does one of the future: Redis's clock went back since.
local function has_run_out(instance)
  local seen = tonumber(call('HGET', lease, instance))
  if seen and seen <= now then return judged_at - seen > lease_ms end
  call('HSET', lease, instance, now)
  return false
end

-- The event comes first, as the stream may refuse it, and the hold goes last.
local function sweep(id, hold, wallet)
  local start = string.sub(hold, 1, 3) == 'v1\t' and 4 or 1
  local amount, free, instance, service =
    string.match(hold, '^(%d+)\t([01])\t%d+\t([^\t]*)\t[^\t]*\t[^\t]*\t([^\t]*)\t', start)
  if not amount or #amount > 16 or not has_run_out(instance) then return end
  call('XADD', usage, '*', 'e1', id .. '\t' .. hold .. '\t' .. settlement)
  if not give_back(wallet, amount, free, service) then reply[#reply + 1] = id end
  call('HDEL', open, id)
  reply[1] = reply[1] + 1
end

for i = 6, #ARGV do
  local hold = call('HGET', open, ARGV[i])
  if hold then
    local since = string.match(hold, '^x\t\t(%d+)\t')
    if not since then
      sweep(ARGV[i], hold, KEYS[i - 2])
    elseif now - tonumber(since) > tombstone_ms then
      call('HDEL', open, ARGV[i])
    end
  end
end
return reply
