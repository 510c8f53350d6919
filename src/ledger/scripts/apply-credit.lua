--[[
  apply-credit.lua: adds a committed credit to a loaded wallet, in the order of the credits' numbers, each at most once. A credit that
  refunds a call also lowers what the call has spent of budgets.

  KEYS   [1] wallet
  ARGV   [1] number of the credit within its account, [2] amount (micro-USD), [3] the budgets whose spending the amount leaves, each as
         <key>.<period>, separated by commas ('': none)
  Reply  {outcome, number of the last credit in the wallet}. Outcomes (mirrored in ledger/wallets/credit-wallets.ts):
           0 APPLIED now or before   1 GAP: an earlier credit is missing   2 NOT_LOADED
           3 DAMAGED: the wallet is no hash, or its balance, its credit number or what it has of these budgets is no integer within 2^53, or
             the balance would not be after this credit; the wallet was left as it is

  A budget of which a later period has begun stays as it is: only Postgres still counts the former one.
  After NOT_LOADED the credit is not safe yet: a load under way may have read Postgres before the credit was committed. So
  `CreditWallets` loads the wallet itself, and tries again.

  A repair that was planned before may bring a budget to the period of this credit, so that both would count it: the ticket of
  repair-wallet.lua goes.
]]
--- @include "includes/integer.lua"
--- @include "includes/child-state.lua"
local wallet = redis.pcall('HMGET', KEYS[1], 'balance', 'credit_seq')
if wallet.err then return string.find(wallet.err, 'WRONGTYPE', 1, true) and { 3, 0 } or wallet end
-- A wallet without a balance is not loaded, even if somebody wrote other fields into it: a credit must not create a wallet.
if not wallet[1] then return { 2, 0 } end
local balance, last = integer(wallet[1]), integer(wallet[2])
local seq, amount = tonumber(ARGV[1]), tonumber(ARGV[2])
if not last then return { 3, 0 } end
if last >= seq then return { 0, last } end
if last + 1 ~= seq then return { 1, last } end
if not balance or balance + amount > 9007199254740991 then return { 3, last } end

-- The new fields, by turns with their names. They are written last, together.
local changed = { 'balance', string.format('%d', balance + amount), 'credit_seq', ARGV[1] }
for key, taken_from in string.gmatch(ARGV[3], '([^.,]+)%.(%d+)') do
  local state = redis.call('HGET', KEYS[1], key)
  if state then
    local tokens, ts, spent, period = child_state(state)
    if not tokens then return { 3, last } end
    if period == tonumber(taken_from) then
      local n = #changed
      changed[n + 1], changed[n + 2] = key, struct.pack(CHILD, tokens, ts, spent - amount, period)
    end
  end
end
if ARGV[3] ~= '' then redis.call('HDEL', KEYS[1], 'ticket') end
redis.call('HSET', KEYS[1], unpack(changed))
return { 0, seq }
