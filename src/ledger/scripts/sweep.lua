#!lua flags=allow-oom
--[[
  sweep.lua: settles holds of gateways that died. It is safe to send from anywhere, any number of times: a hold is given back
  only if its instance's lease is older than ARGV[1], and only the script that removes the hold may give it back.

  KEYS   [1] open, [2] lease, [3] usage, then for each candidate: wallet, claims, times of the claims
  ARGV   [1] maximum age of a lease (ms), [2] maximum age of a tombstone (ms), [3] settlement of a swept call, [4] time at which
         leases are judged, by Redis's clock (ms), [5] the only Redis to sweep in, as run_id and master_replid with a space between
         them, or '' for any, then usage_id of each candidate
  Reply  {number of holds swept, usage_id of each call that was swept although its damaged wallet got nothing back}

  A hold that is damaged, or of another version, is left as it is. If the stream refuses an event, nothing
  of that hold is changed, and the script ends with the error; holds before it stay swept. A claim that a hold names is free again.

  An instance without a lease is not dead yet: Redis may have come back without its leases while the gateway lives. The script
  gives it a lease, and its holds are swept when that runs out.

  Leases are judged as of ARGV[4], not as of now: if the whole machine slept between the sweeper's reading of that time and this
  script, the living gateways slept as well and could not renew. ARGV[5] is there because a Redis that restarted after the sweeper's
  checks, or was a replica since, may have an older state than Postgres, with holds of calls that are stored. Sweeping those would refund them.
]]
--- @include "includes/read-hold.lua"
--- @include "includes/child-state.lua"
--- @include "includes/give-back.lua"
--- @include "includes/data-id.lua"
--- @include "includes/free-claim.lua"
local call = redis.call
local open, lease, usage = KEYS[1], KEYS[2], KEYS[3]
local lease_ms, tombstone_ms, settlement = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local judged_at = math.min(now, tonumber(ARGV[4]))
local reply = { 0 }

if ARGV[5] ~= '' and ARGV[5] ~= data_id() then return reply end

-- A lease that cannot be read counts as missing. So does a lease in the future: Redis's clock has gone back since.
local function has_run_out(instance)
  local seen = tonumber(call('HGET', lease, instance))
  if seen and seen <= now then return judged_at - seen > lease_ms end
  call('HSET', lease, instance, now)
  return false
end

-- The event is added first: if the stream refuses it, nothing has changed yet. The hold is deleted last.
local function sweep(id, hold, wallet, claims, times)
  local amount, free, instance, _, service = read_hold(hold)
  if not amount or not has_run_out(instance) then return end
  call('XADD', usage, '*', 'e1', id .. '\t' .. hold .. '\t' .. settlement)
  if not give_back(wallet, hold, amount, free, service) then reply[#reply + 1] = id end
  local name = string.match(hold, '\tclaim=([^\t]+)')
  if name then free_claim(claims, times, name, id) end
  call('HDEL', open, id)
  reply[1] = reply[1] + 1
end

for i = 6, #ARGV do
  local hold = call('HGET', open, ARGV[i])
  if hold then
    local since = string.match(hold, '^x\t\t(%d+)\t')
    if not since then
      local at = 3 * i - 14
      sweep(ARGV[i], hold, KEYS[at], KEYS[at + 1], KEYS[at + 2])
    elseif now - tonumber(since) > tombstone_ms then
      call('HDEL', open, ARGV[i])
    end
  end
end
return reply
