#!lua flags=allow-oom
--[[
  repair-wallet.lua: takes a drift out of a wallet, and deletes its holds of calls that Postgres has stored; all of it, or nothing.

  Calls, settlements and credits after the wallet was read change no drift, so they do not make the repair wrong. Another repair
  makes it wrong, and so may a debit, and a Redis that lost data since. In each of these cases the ticket is gone that
  compare-wallets.lua wrote into the wallet when it was read, and this script changes nothing. The ticket is younger than all that
  was read, and Redis loses the youngest writes first. So while the ticket is there, nothing that was read is lost.

  If there is another mark than the reading saw, a writer of a lost Postgres may have trimmed what was read: nothing is changed.

  KEYS   [1] wallet, [2] open, [3] mark
  ARGV   [1] the ticket, [2] latest time for the repair (ms, Redis's clock): after it the shard's flush lock may be lost
         [3] the mark that the reading saw, [4] that of the last flush that Postgres had ('' for none)
         [5] number of the repair, kept in the wallet, so that a lost reply leaves no doubt whether the repair was made
         [6] change of the balance (micro-USD), [7] number of holds to delete, [8] number of budgets to change
         then for each of the holds: usage_id, hold as read
         then for each of the budgets: key, its period as read, change of the period, change of what was spent (micro-USD)
         then for each other field to change (free calls used, debits): field, change

  A budget of which a call has opened a later period since the reading stays as it is: the changes are those of another period. The
  next reading shows whether it is right.

  Reply  1 done; 0 not done: no balance, free field or hold has changed. In both cases the ticket is used up
]]
--- @include "includes/child-state.lua"
local call, format = redis.call, string.format
local wallet, open = KEYS[1], KEYS[2]

if redis.pcall('HGET', wallet, 'ticket') ~= ARGV[1] then return 0 end
call('HDEL', wallet, 'ticket')
local time = call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[2]) then return 0 end
local mark = call('GET', KEYS[3]) or ''
if mark ~= ARGV[3] and mark ~= ARGV[4] then return 0 end

local first_budget = 9 + 2 * tonumber(ARGV[7])
local first_field = first_budget + 4 * tonumber(ARGV[8])
for i = 9, first_budget - 1, 2 do
  if call('HGET', open, ARGV[i]) ~= ARGV[i + 1] then return 0 end
end

-- Makes the changes before anything is deleted, because Redis may refuse one (a damaged number).
-- @return whether all were made; if not, those made before are undone
local function change_all(changes)
  for i = 1, #changes, 2 do
    if type(redis.pcall('HINCRBY', wallet, changes[i], changes[i + 1])) ~= 'number' then
      for done = 1, i - 2, 2 do call('HINCRBY', wallet, changes[done], format('%d', -changes[done + 1])) end
      return false
    end
  end
  return true
end

-- The new fields of the budgets, by turns with their names. They are written last, as nothing can fail that was read here.
local budgets = {}
for i = first_budget, first_field - 1, 4 do
  local state = call('HGET', wallet, ARGV[i])
  local tokens, ts, spent, period = 0, 0, 0, 0
  if state then tokens, ts, spent, period = child_state(state) end
  if not tokens then return 0 end
  if period == tonumber(ARGV[i + 1]) then
    local n = #budgets
    budgets[n + 1], budgets[n + 2] = ARGV[i], struct.pack(CHILD, tokens, ts, spent + ARGV[i + 3], period + ARGV[i + 2])
  end
end
local changes = { 'balance', ARGV[6] }
for i = first_field, #ARGV do changes[#changes + 1] = ARGV[i] end
if not change_all(changes) then return 0 end
for i = 1, #budgets, 2 do call('HSET', wallet, budgets[i], budgets[i + 1]) end
for i = 9, first_budget - 1, 2 do call('HDEL', open, ARGV[i]) end
call('HSET', wallet, 'repair', ARGV[5])
return 1
