--[[
  apply-credit.lua: adds a committed credit to a loaded wallet, in order, at most once.

  KEYS   [1] wallet
  ARGV   [1] number of the credit within its account, [2] amount (micro-USD)
  Reply  {outcome, number of the last credit in the wallet}. Outcomes (mirrored in ledger/wallet-state.ts):
           0 APPLIED now or before   1 GAP: an earlier credit is missing   2 NOT_LOADED

  Not loaded is not 'nothing to do': somebody may be loading what Postgres said before the credit was committed.
]]
local last = tonumber(redis.call('HGET', KEYS[1], 'credit_seq'))
if not last then return { 2, 0 } end
local seq = tonumber(ARGV[1])
if last >= seq then return { 0, last } end
if last + 1 ~= seq then return { 1, last } end
redis.call('HINCRBY', KEYS[1], 'balance', ARGV[2])
redis.call('HSET', KEYS[1], 'credit_seq', ARGV[1])
return { 0, seq }
