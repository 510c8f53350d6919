#!lua flags=allow-oom
--[[
  sweep.lua: settles holds of gateways that died. Safe to run anywhere, any number of times: a hold is given back only
  while its instance's lease is older than the bound, and removing the hold is the permission to act.

  KEYS   [1] open, [2] lease, [3] usage, then the wallet of each candidate
  ARGV   [1] lease bound (ms), [2] tombstone bound (ms), [3] settlement of a swept call, [4] time of the judgement by
         Redis's clock (ms), [5] the only Redis process (run_id) to do it in, or '', then usage_id of each candidate
  Reply  number of holds swept

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
local swept = 0

if ARGV[5] ~= '' and not string.find(call('INFO', 'server'), 'run_id:' .. ARGV[5], 1, true) then return 0 end

for i = 6, #ARGV do
  local id = ARGV[i]
  local hold = call('HGET', open, id)
  if hold then
    local amount, free, at, instance, service =
      string.match(hold, '^(%w+)\t(%d?)\t(%d+)\t([^\t]*)\t?[^\t]*\t?[^\t]*\t?([^\t]*)')
    if amount == 'x' then
      if now - tonumber(at) > tombstone_ms then call('HDEL', open, id) end
    else
      local seen = call('HGET', lease, instance)
      if not seen then
        call('HSET', lease, instance, now)
      elseif judged_at - tonumber(seen) > lease_ms then
        local wallet = KEYS[i - 2]
        call('HDEL', open, id)
        if call('HEXISTS', wallet, 'balance') == 1 then
          if free == '1' then
            call('HINCRBY', wallet, 'free:' .. service, -1)
          elseif amount ~= '0' then
            call('HINCRBY', wallet, 'balance', amount)
          end
        end
        call('XADD', usage, '*', 'e', id .. '\t' .. hold .. '\t' .. settlement)
        swept = swept + 1
      end
    end
  end
end
return swept
