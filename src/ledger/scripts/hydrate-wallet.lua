--[[
  hydrate-wallet.lua: fills a wallet with values from Postgres, unless it is loaded already, it is too late, or another flush was
  trimmed meanwhile.

  KEYS   [1] wallet, [2] mark
  ARGV   [1] latest time for the fill (ms, Redis's clock): after it the shard's flush lock may be lost, under which the values were
         read, and calls may be stored that they lack
         [2] the mark that was seen before Postgres was read, [3] that of the last flush that Postgres had ('' for none)
         [4] balance (micro-USD), [5] number of the last credit in it, [6] number of the last debit in it, [7] what all debits
         have taken (micro-USD), [8] number of child keys, then for each: its id, what it has spent of its budget (micro-USD), in which
         period; then in pairs, field and number: the free calls used
  Reply  1 loaded now; 0 it was loaded already, and Redis's values stay; 2 too late, or Redis has another mark: nothing changed
]]
--- @include "includes/child-state.lua"
if redis.call('HEXISTS', KEYS[1], 'balance') == 1 then return 0 end
local time = redis.call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[1]) then return 2 end
local mark = redis.call('GET', KEYS[2]) or ''
if mark ~= ARGV[2] and mark ~= ARGV[3] then return 2 end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'balance', ARGV[4], 'credit_seq', ARGV[5], 'debit_seq', ARGV[6], 'debited', ARGV[7])
local first_free = 9 + 3 * ARGV[8]
for i = 9, first_free - 1, 3 do
  -- A bucket of time 0 is full.
  redis.call('HSET', KEYS[1], ARGV[i], struct.pack(CHILD, 0, 0, tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])))
end
for i = first_free, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
return 1
