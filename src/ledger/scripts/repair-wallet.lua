--[[
  repair-wallet.lua: takes a drift out of a wallet, and drops holds of calls that are stored already; all of it, or nothing.

  Calls, settlements and credits since the wallet was read change no drift, so they are no reason to refuse. A Redis that
  lost something since, or another repair, is: then the ticket that was left at the reading is gone. Where the ticket is,
  all that was read is, or was moved by the scripts: Redis loses the youngest writes first.

  KEYS   [1] wallet, [2] open
  ARGV   [1] the ticket, [2] latest time to do it (ms, Redis's clock): then the lock that keeps Postgres still may be lost
         [3] number of the repair, kept in the wallet: it says that the repair was made, should the reply be lost
         [4] change of the balance (micro-USD), [5] number of holds to drop, then for each: usage_id, hold as read
         then for each free field to change: field, change
  Reply  1 done, 0 nothing was changed: neither when one of the numbers is damaged, as the others are then put back
]]
local call, format = redis.call, string.format
local wallet, open = KEYS[1], KEYS[2]

if redis.pcall('HGET', wallet, 'ticket') ~= ARGV[1] then return 0 end
call('HDEL', wallet, 'ticket')
local time = call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[2]) then return 0 end

local first_field = 6 + 2 * tonumber(ARGV[5])
for i = 6, first_field - 1, 2 do
  if call('HGET', open, ARGV[i]) ~= ARGV[i + 1] then return 0 end
end

-- What may refuse comes first. @return whether all of the changes were made; the rest of them was not
local function change_all(changes)
  for i = 1, #changes, 2 do
    if type(redis.pcall('HINCRBY', wallet, changes[i], changes[i + 1])) ~= 'number' then
      for done = 1, i - 2, 2 do call('HINCRBY', wallet, changes[done], format('%d', -changes[done + 1])) end
      return false
    end
  end
  return true
end

local changes = { 'balance', ARGV[4] }
for i = first_field, #ARGV do changes[#changes + 1] = ARGV[i] end
if not change_all(changes) then return 0 end
for i = 6, first_field - 1, 2 do call('HDEL', open, ARGV[i]) end
call('HSET', wallet, 'repair', ARGV[3])
return 1
