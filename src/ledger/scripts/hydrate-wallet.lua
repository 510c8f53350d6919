--[[
  hydrate-wallet.lua: fills a wallet with values from Postgres, unless it is loaded already, or it is too late.

  KEYS   [1] wallet
  ARGV   [1] latest time for the fill (ms, Redis's clock): after it the shard's flush lock may be lost, under which the values were
         read, and calls may be stored that they lack
         [2] balance (micro-USD), [3] number of the last credit in it, [4] number of the last debit in it, [5] what all debits
         have taken (micro-USD), then the free calls used, in pairs: field, number
  Reply  1 loaded now; 0 it was loaded already, and Redis's values stay; 2 too late, nothing changed
]]
if redis.call('HEXISTS', KEYS[1], 'balance') == 1 then return 0 end
local time = redis.call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[1]) then return 2 end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'balance', ARGV[2], 'credit_seq', ARGV[3], 'debit_seq', ARGV[4], 'debited', ARGV[5])
for i = 6, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
return 1
