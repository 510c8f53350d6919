#!lua flags=allow-oom
--[[
  drop-wallets.lua: deletes wallets with nothing under way, to be loaded again exactly. It judges and deletes at one instant: what began
  before is seen, and what begins later finds no wallet.

  KEYS   [1] open, [2] usage, [3] mark, then the wallets
  ARGV   [1] [2] the marks that Redis may have
         [3] id of the last entry of the stream that was read ('': none), [4] its fields, tab separated ('': not compared)
         [5] maximum number of entries that were not read
         [6] for each wallet the numbers of the last credit and of the last ended debit that Postgres knows: 'credit debit,credit debit,…'
  Reply  for each wallet the number of its last repair (0: none) if it was deleted, else -1. Empty: nothing was done, because Redis has
         another mark, or too many entries, or holds or events that cannot be read, which may be of any account

  A wallet stays that has a hold, an event that was not read, a credit or a debit that Postgres does not know, or a damaged number. The
  caller leaves out those with events that were read.

  If there is another mark, Postgres may be older than Redis, and could not load the wallets again.
]]
--- @include "includes/child-state.lua"
--- @include "includes/integer.lua"
--- @include "includes/read-hold.lua"
--- @include "includes/unread-entries.lua"
local call = redis.call
local mark = call('GET', KEYS[3]) or ''
if mark ~= ARGV[1] and mark ~= ARGV[2] then return {} end

-- By account, with which the key of its wallet ends.
local busy = {}
local ACCOUNT_LENGTH = 36

-- @return false if the hold, or the hold within an event, cannot be read
local function note(hold)
  local amount, _, _, account = read_hold(hold)
  if amount then busy[account] = true end
  return amount
end

local open = call('HVALS', KEYS[1])
for i = 1, #open do
  if not note(open[i]) and string.sub(open[i], 1, 2) ~= 'x\t' then return {} end
end
local entries = unread_entries(KEYS[2], ARGV[3], ARGV[4], ARGV[5] + 1)
if #entries > tonumber(ARGV[5]) then return {} end
for i = 1, #entries do
  local fields = entries[i][2]
  if fields[1] ~= 'e1' or not note(string.match(fields[2], '\t(.*)') or '') then return {} end
end

-- The same few numbers stand in most wallets, and a number costs more to read than to find.
local known = {}
local function number_of(text)
  local number = known[text]
  if number == nil then
    number = integer(text) or false
    known[text] = number
  end
  return number
end

local PLAIN = { balance = true, credit_seq = true, debit_seq = true, debited = true, repair = true }

-- One table for all wallets: a new one for each takes longer than all that is read into it.
local numbers = {}

-- @return `numbers`, those of the wallet by field; nil: it is damaged, or not loaded
local function read(wallet)
  local fields = redis.pcall('HGETALL', wallet)
  numbers.balance, numbers.credit_seq, numbers.debit_seq, numbers.debited, numbers.repair = nil
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    if PLAIN[name] then
      local number = number_of(value)
      if not number then return nil end
      numbers[name] = number
    elseif string.sub(name, 1, 5) == 'free:' then
      if not number_of(value) then return nil end
    elseif string.sub(name, 1, 4) == 'acf_' and not child_state(value) then
      return nil
    end
  end
  return numbers.balance and numbers.credit_seq and numbers.debit_seq and numbers.debited and numbers
end

local is_any_busy = next(busy)
local reply, gone, n = {}, {}, 0
for credit_seq, debit_seq in string.gmatch(ARGV[6], '(%d+) (%d+)') do
  n = n + 1
  local name = KEYS[n + 3]
  local wallet = not (is_any_busy and busy[string.sub(name, -ACCOUNT_LENGTH)]) and read(name)
  if wallet and wallet.credit_seq <= number_of(credit_seq) and wallet.debit_seq <= number_of(debit_seq) then
    gone[#gone + 1] = name
    reply[n] = wallet.repair or 0
  else
    reply[n] = -1
  end
end
-- Else a wallet was judged by the numbers of another.
if n ~= #KEYS - 3 then return redis.error_reply('ERR drop-wallets: not two numbers for each wallet') end
if #gone > 0 then call('DEL', unpack(gone)) end
return reply
