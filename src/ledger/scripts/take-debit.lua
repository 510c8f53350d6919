--[[
  take-debit.lua: decides a debit: takes its amount out of a loaded wallet, or refuses it because the balance is too low.

  A wallet knows the number of the last debit that it decided ('debit_seq') and what all its debits have taken ('debited'). So
  however often and however late a debit is sent, it is decided once.

  KEYS   [1] wallet
  ARGV   [1] number of the debit within its account, [2] what all earlier debits have taken (micro-USD), [3] amount (micro-USD)
  Reply  {outcome, balance (micro-USD)}. Outcomes (mirrored in ledger/wallets/debit-wallets.ts):
           0 TAKEN now or before   1 REFUSED now or before   2 NOT_LOADED
           3 DAMAGED: the wallet is no hash, or a number in it is missing or no integer within 2^53; the wallet was left as it is
           4 UNKNOWN: the wallet has decided a later debit, or another one with this number. Postgres must have the outcome

  ARGV[2] comes from Postgres, where every earlier debit has ended. If the wallet has taken less, Redis has lost a debit; if it
  has taken more, a Redis that came back older decided differently than Postgres has stored. Either way the difference leaves or
  enters the wallet here, before the decision. That, and a repair that was planned before this debit, would correct the same
  difference twice, so the ticket of repair-wallet.lua goes.
]]
--- @include "includes/integer.lua"
local MAX = 9007199254740991

local found = redis.pcall('HMGET', KEYS[1], 'balance', 'debit_seq', 'debited')
if found.err then return string.find(found.err, 'WRONGTYPE', 1, true) and { 3, 0 } or found end
if not found[1] then return { 2, 0 } end
local seq, before, amount = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local balance, last, debited = integer(found[1]), integer(found[2]), integer(found[3])
if not balance or not last or not debited then return { 3, 0 } end

if last > seq then return { 4, balance } end
if last == seq then
  if debited == before + amount then return { 0, balance } end
  if debited == before then return { 1, balance } end
  return { 4, balance }
end

balance = balance - (before - debited)
local outcome = 1
if balance >= amount then
  outcome, balance, before = 0, balance - amount, before + amount
end
if balance > MAX or balance < -MAX or before > MAX then return { 3, 0 } end
redis.call('HSET', KEYS[1], 'balance', string.format('%d', balance), 'debit_seq', ARGV[1], 'debited', string.format('%d', before))
redis.call('HDEL', KEYS[1], 'ticket')
return { outcome, balance }
