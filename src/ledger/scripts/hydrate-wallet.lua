--[[
  hydrate-wallet.lua: fills a wallet with values from Postgres, unless it is loaded already.

  KEYS   [1] wallet
  ARGV   [1] balance (micro-USD), [2] number of the last credit in it, then pairs: field, value. These are 'debit_seq' and
         'debited', the number of the last debit in the balance and what all debits have taken; and the free calls used
  Reply  1 loaded now; 0 it was loaded already, and Redis's values stay
]]
if redis.call('HEXISTS', KEYS[1], 'balance') == 1 then return 0 end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'balance', ARGV[1], 'credit_seq', ARGV[2])
for i = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
return 1
