--[[
  apply-credit.lua: adds a committed credit to a loaded wallet, in the order of the credits' numbers, each at most once.

  KEYS   [1] wallet
  ARGV   [1] number of the credit within its account, [2] amount (micro-USD)
  Reply  {outcome, number of the last credit in the wallet}. Outcomes (mirrored in ledger/wallets/credit-wallets.ts):
           0 APPLIED now or before   1 GAP: an earlier credit is missing   2 NOT_LOADED
           3 DAMAGED: the wallet is no hash, or its balance or credit number is no integer within 2^53, or would not be after
             this credit; the wallet was left as it is

  The balance changes before the credit number: if Redis refuses to change the balance, nothing has been done.
  After NOT_LOADED the credit is not safe yet: a load under way may have read Postgres before the credit was committed. So
  `CreditWallets` loads the wallet itself, and tries again.
]]
--- @include "includes/integer.lua"
local wallet = redis.pcall('HMGET', KEYS[1], 'balance', 'credit_seq')
if wallet.err then return string.find(wallet.err, 'WRONGTYPE', 1, true) and { 3, 0 } or wallet end
-- A wallet without a balance is not loaded, even if somebody wrote other fields into it: a credit must not create a wallet.
if not wallet[1] then return { 2, 0 } end
local last, seq = integer(wallet[2]), tonumber(ARGV[1])
if not last then return { 3, 0 } end
if last >= seq then return { 0, last } end
if last + 1 ~= seq then return { 1, last } end
local balance = redis.pcall('HINCRBY', KEYS[1], 'balance', ARGV[2])
if type(balance) ~= 'number' then
  local is_damage = string.find(balance.err, 'not an integer', 1, true) or string.find(balance.err, 'would overflow', 1, true)
  return is_damage and { 3, last } or balance
end
if balance > 9007199254740991 or balance < -9007199254740991 then
  redis.call('HINCRBY', KEYS[1], 'balance', string.format('%d', -ARGV[2]))
  return { 3, last }
end
redis.call('HSET', KEYS[1], 'credit_seq', ARGV[1])
return { 0, seq }
