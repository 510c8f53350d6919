#!lua flags=allow-oom
--[[
  batch.lua: every admission and settlement of one event-loop turn of one gateway, in one trip.
  It may exceed maxmemory: a full Redis must not stop calls from being settled, nor let the sweep take what it cannot
  renew. New calls are stopped before (admission/backlog.ts).
  The script is the only place where a call's money moves between a wallet and a hold.

  KEYS   consumed from left to right by the commands, as each states.
  ARGV   [1] instance: who is written into the holds. Then what each command states. The last: a letter for each command,
         in one text. A run with the first alone has none: it says whether this Redis carries out scripts.
  Reply  numbers in decimal, separated by spaces, as one text: each command appends what it states, in order. An array costs
         the server one reply a number, and the client one decision about its type.

  'P'  terms of the calls admitted after it, up to the next 'P'
         ARGV price (micro-USD), free calls of the listing, wallet field of the free calls used
         reply nothing
  'A'  admit a call: key state, token, free slot or wallet, open hold
         KEYS bucket, wallet, open
         ARGV usage_id, tail of the hold: account, key, service, provider, method, path; tab separated
         reply code, limit, tokens, balance after the call (micro-USD), served from the free tier (0|1)
  'S'  settle a call: its hold goes, one usage event comes
         KEYS open, usage
         ARGV usage_id, settlement (opaque here, see ledger/usage-event.ts)
         reply a code of closing, below
  'R'  the same with a refund: what the hold took goes back
         KEYS open, usage, wallet
         ARGV and reply as 'S'
  'C'  cancel an admission whose reply was lost: as 'R', and where there is no hold, a tombstone keeps
       the admission from being carried out should it still arrive
         KEYS open, usage, wallet
         ARGV and reply as 'S'
  'T'  take one token
         KEYS bucket
         ARGV limit: requests per minute of an address's bucket, made on demand; '0': the bucket of an API key
         reply code, limit, tokens
  'L'  renew the lease of an instance in a shard
         KEYS lease, open
         ARGV instance
         reply nothing

  Codes (mirrored in admission/codes.ts):
    0 OK   1 RATE_LIMITED   2 KEY_REVOKED   3 KEY_NOT_LOADED   4 WALLET_NOT_LOADED   5 INSUFFICIENT_BALANCE
    6 DUPLICATE: this usage_id is held or cancelled already   7 ACCOUNT_SUSPENDED
    8 WALLET_DAMAGED   9 SHARD_DAMAGED: the hash of open holds is of another type
  Codes of closing (mirrored there, too):
    0 NO_HOLD: somebody else settled it   1 SETTLED now
    2 SETTLED_BESIDE_WALLET: settled now, but the wallet is damaged and got nothing back
    3 HOLD_LEFT: the hold is damaged, or of a newer version; it was left alone
    4 NOT_CLOSED: the hash of holds or the stream is damaged; nothing was changed, and it may be sent again

  `tokens` is in units of 1/60000 of a request, so that a refill of `limit` requests a minute is exactly `limit` units a
  millisecond: integers only. A rejected call changes nothing but its bucket: codes 5, 8 and 9 have taken its
  token, and a bucket of a later time than now is refilled from now on.

  Damaged data (a key of another type, a number that HINCRBY refuses, one beyond 2^53) concern one command, never the batch.
  In each command the Redis calls that may refuse come first. They raise, and `answer_damaged` answers for that command; or they
  are tried, and what was done before is undone. The batch goes on behind it. So nothing is counted on (k, a, r) before a
  command is done. What Postgres or time restores (limit, status, tokens, leases, a bucket of another type) is dropped here and
  made anew. A damaged wallet is left as it is: to mend it, an operator deletes it.

  A hold's text: 'v1', amount, free (0|1), admitted at (ms), instance, then the tail; tab separated. Holds of earlier versions lack
  'v1' and begin with the amount. A tombstone's: 'x', '', ms, instance. The event: a field 'e1' of usage_id, hold, settlement.
  A hash without fields is deleted. So that `open` need not be made anew for every other call of a shard that has few, a renewal
  leaves a tombstone of no call in it, which the sweep takes away once nobody renews it.
]]
local call, try, format, byte, match = redis.call, redis.pcall, string.format, string.byte, string.match
local KEYS, ARGV = KEYS, ARGV
-- Codes stand here as the header lists them, and letters by their bytes: a constant that functions share costs each batch 0.2 µs,
-- and a function that refers to many up to 1. 60000 is one request; 9007199254740991 the largest number that Lua and the gateway
-- have exactly. Codes are text, and so is every number that only passes through: to write one as text takes 0.3 µs, and takes
-- numbers from 10^14 on for '1e+14'. Where a number is made, `%d` writes it in 0.18.

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_text = format('%d', now)
local since = '\t' .. now_text .. '\t' .. ARGV[1] .. '\t'
local price, quota, quota_text, free_field, debit
-- The limit that was checked last, as text and as a number: most keys have the same.
local limit_text, limit_number
local reply, r = {}, 0
local k, a = 1, 2
local rare, rare_commands

-- Code and tokens of a bucket now. A clock that went back refills nothing and takes nothing away; but from now on the bucket is
-- refilled by it. A bucket that lacks one of its numbers is full, and so is one of 'nan' or below zero: ours never are.
local function refill(bucket, limit, tokens, ts)
  local capacity = limit * 60000
  if not tokens or not ts then return '0', capacity end
  if now > ts then tokens = tokens + (now - ts) * limit end
  if not (tokens <= capacity) then return '0', capacity end
  if tokens >= 60000 then return '0', tokens end
  if tokens < 0 then return '0', capacity end
  if not (ts <= now) then call('HSET', bucket, 'tokens', format('%d', tokens), 'ts', now_text) end
  return '1', tokens -- rate limited
end

-- State of an API key's bucket: code, tokens (number), limit (text).
local function key_bucket(bucket)
  local state = try('HMGET', bucket, 'limit', 'status', 'tokens', 'ts')
  local limit = state[1]
  if not limit or state[2] ~= 'active' or (limit ~= limit_text and (#limit > 9 or not match(limit, '^[1-9]%d*$'))) then
    rare = rare or rare_commands()
    return rare.barred(bucket, state)
  end
  if limit ~= limit_text then limit_text, limit_number = limit, tonumber(limit) end
  local code, tokens = refill(bucket, limit_number, tonumber(state[3]), tonumber(state[4]))
  return code, tokens, limit
end

-- Whether a balance of no more digits than the price is an integer, and lower.
local function is_lower(found, price)
  return (tonumber(found) or 0) < tonumber(price) and format('%d', tonumber(found) or 0) == found
end

-- HINCRBY is the first to write: it refuses a balance that is no integer. Where it has no balance to change, that is compared
-- with the number that it says. A balance that is lower than the price is refused before any write, as most of them have no more
-- digits than the price; the others (a negative one) are found by the result, and put back.
local function admit()
  local code, tokens, limit = key_bucket(KEYS[k])
  local balance, free = '0', '0'
  if code == '0' then
    local wallet, found, used, left, opened = KEYS[k + 1], nil, nil, nil, nil
    if free_field then
      local funds = call('HMGET', wallet, 'balance', free_field)
      found, used = funds[1], funds[2]
      if (tonumber(used) or 0) < quota then
        free = '1'
      elseif used ~= quota_text and format('%d', tonumber(used)) ~= used then
        -- 'nan', '1e99' or '0x7': its buyer would be charged.
        error('free calls used: not an integer', 0)
      end
    else
      found = call('HGET', wallet, 'balance')
    end
    if not found then
      code = '4' -- wallet not loaded
    elseif price ~= '0' and free == '0' and #found <= #price and is_lower(found, price) then
      code, balance, opened = '5', found, 1 -- insufficient balance
    elseif price ~= '0' and free == '0' then
      left = call('HINCRBY', wallet, 'balance', debit)
      if left >= 0 and left <= 9007199254740991 then
        opened = try('HSETNX', KEYS[k + 2], ARGV[a], 'v1\t' .. price .. '\t0' .. since .. ARGV[a + 1])
        balance = format('%d', left)
      end
    else
      -- What costs nothing asks for no money, of a wallet below zero neither.
      left = tonumber(found)
      if left and left <= 9007199254740991 and left >= -9007199254740991 and format('%d', left) == found then
        if free == '1' then call('HINCRBY', wallet, free_field, '1') end
        opened = try('HSETNX', KEYS[k + 2], ARGV[a], 'v1\t0\t' .. free .. since .. ARGV[a + 1])
        balance = found
      end
    end
    if opened ~= 1 and found then
      rare = rare or rare_commands()
      code, balance = rare.undo(wallet, left, free, used, opened)
    end
  end
  local tokens_text
  if code == '0' or code == '5' or code == '8' or code == '9' then
    tokens_text = format('%d', tokens - 60000)
    call('HSET', KEYS[k], 'tokens', tokens_text, 'ts', now_text)
  else
    tokens_text = format('%d', tokens)
  end
  r = r + 1
  reply[r] = code .. ' ' .. limit .. ' ' .. tokens_text .. ' ' .. balance .. ' ' .. free
  k = k + 3
  a = a + 2
end

-- Removing the hold is the permission to act: whoever does not find it does nothing. The event comes first, as the stream may
-- refuse it. @return code of closing, nil for no hold
local function settle(open, usage, id, settlement)
  local hold = call('HGET', open, id)
  if not hold then return nil end
  -- Where its time begins: the amount has 16 digits at most. What `read_hold` looks at besides would cost 0.4 µs here.
  local time_at = match(hold, '^v1\t%d+\t[01]\t()')
  if not time_at or time_at > 23 then
    if byte(hold) == 120 then return '0' end -- a tombstone
    rare = rare or rare_commands()
    if not rare.read_hold(hold) then return '3' end -- damaged, or of a newer version
  end
  call('XADD', usage, '*', 'e1', id .. '\t' .. hold .. '\t' .. settlement)
  call('HDEL', open, id)
  return '1'
end

local at, letters = 1, #ARGV > 1 and ARGV[#ARGV] or ''

local function carry_out()
  for i = at, #letters do
    at = i
    local letter = byte(letters, i)
    if letter == 65 then -- A
      admit()
    elseif letter == 83 then -- S
      local code = settle(KEYS[k], KEYS[k + 1], ARGV[a], ARGV[a + 1]) or '0'
      r = r + 1
      reply[r] = code
      k = k + 2
      a = a + 2
    elseif letter == 80 then -- P
      price, quota_text, free_field = ARGV[a], ARGV[a + 1], ARGV[a + 2]
      quota = tonumber(quota_text)
      if quota == 0 or price == '0' then free_field = nil end
      debit = '-' .. price
      a = a + 3
    else
      rare = rare or rare_commands()
      rare[letter]()
    end
  end
end

-- What most batches have none of.
rare_commands = function()
  local find = string.find
  local KEY_NOT_LOADED = '3'
  local SETTLED, SETTLED_BESIDE_WALLET, HOLD_LEFT, NOT_CLOSED = '1', '2', '3', '4'
  local functions = {}

  -- A key that may not call: code, tokens, limit. What Postgres restores, and is damaged, goes: it is loaded where it is absent.
  function functions.barred(bucket, state)
    local limit, status = state[1], state[2]
    if state.err then
      if not find(state.err, 'WRONGTYPE', 1, true) then error(state) end
      call('DEL', bucket)
    elseif limit and status then
      if #limit > 9 or not find(limit, '^[1-9]%d*$') then
        call('HDEL', bucket, 'limit')
      elseif status == 'suspended' then
        return '7', 0, limit -- account suspended
      elseif status == 'revoked' then
        return '2', 0, limit -- revoked
      elseif find(status, '^[a-z_]+$') then
        return '2', 0, limit -- a status of a newer version: certainly not 'active'
      else
        call('HDEL', bucket, 'status')
      end
    end
    return KEY_NOT_LOADED, 0, '0'
  end

  -- An admission that did not come to its end: gives back what it took. @return code, balance
  function functions.undo(wallet, left, free, used, opened)
    if free == '0' and price ~= '0' then
      call('HINCRBY', wallet, 'balance', price)
      if left < 0 and left >= -9007199254740991 then return '5', format('%d', left + price) end -- insufficient balance
    elseif free == '1' and opened then
      if used then call('HINCRBY', wallet, free_field, '-1') else call('HDEL', wallet, free_field) end
    end
    if opened == 0 then return '6', '0' end -- duplicate
    if not opened then return '8', '0' end -- wallet damaged
    if not find(opened.err, 'WRONGTYPE', 1, true) then error(opened) end
    return '9', '0' -- shard damaged
  end

  -- A wallet that is not loaded will be loaded with the money in it. @return whether the wallet could take it
  local function give_back(wallet, amount, free, service)
    local field, back = 'balance', amount
    if free == '1' then
      field, back = 'free:' .. service, '-1'
    elseif amount == '0' then
      return true
    end
    local loaded = try('HEXISTS', wallet, 'balance')
    if loaded == 0 then return true end
    return loaded == 1 and type(try('HINCRBY', wallet, field, back)) == 'number'
  end

  -- @return amount, free (0|1), service; nil for what is damaged or of a newer version
  function functions.read_hold(hold)
    local start = string.sub(hold, 1, 3) == 'v1\t' and 4 or 1
    local amount, free, service =
      string.match(hold, '^(%d+)\t([01])\t%d+\t[^\t]*\t[^\t]*\t[^\t]*\t([^\t]*)\t', start)
    if amount and #amount <= 16 then return amount, free, service end
  end

  -- As `settle`, and what the hold took goes back before it ends.
  local function refund(open, usage, wallet, id, settlement)
    local hold = call('HGET', open, id)
    if not hold then return nil end
    if byte(hold) == 120 then return '0' end
    local amount, free, service = functions.read_hold(hold)
    if not amount then return HOLD_LEFT end
    call('XADD', usage, '*', 'e1', id .. '\t' .. hold .. '\t' .. settlement)
    local code = give_back(wallet, amount, free, service) and SETTLED or SETTLED_BESIDE_WALLET
    call('HDEL', open, id)
    return code
  end

  functions[byte('R')] = function()
    local code = refund(KEYS[k], KEYS[k + 1], KEYS[k + 2], ARGV[a], ARGV[a + 1]) or '0'
    r = r + 1
    reply[r] = code
    k = k + 3
    a = a + 2
  end

  functions[byte('C')] = function()
    local open, id = KEYS[k], ARGV[a]
    local closed = refund(open, KEYS[k + 1], KEYS[k + 2], id, ARGV[a + 1])
    if closed == nil then call('HSET', open, id, 'x\t\t' .. now_text .. '\t' .. ARGV[1]) end
    r = r + 1
    reply[r] = closed or '0'
    k = k + 3
    a = a + 2
  end

  local function address_bucket(bucket, limit)
    local state = try('HMGET', bucket, 'tokens', 'ts')
    if state.err then functions.barred(bucket, state) end
    return refill(bucket, limit, tonumber(state[1]), tonumber(state[2]))
  end

  functions[byte('T')] = function()
    local bucket, limit = KEYS[k], ARGV[a]
    local of_address = limit ~= '0'
    local code, tokens
    if of_address then
      code, tokens = address_bucket(bucket, tonumber(limit))
    else
      code, tokens, limit = key_bucket(bucket)
    end
    if code == '0' then tokens = tokens - 60000 end
    local tokens_text = format('%d', tokens)
    if code == '0' then
      call('HSET', bucket, 'tokens', tokens_text, 'ts', now_text)
      -- A bucket nobody touched for a minute is full: forgetting it changes nothing.
      if of_address then call('PEXPIRE', bucket, '61000') end
    end
    r = r + 1
    reply[r] = code .. ' ' .. limit .. ' ' .. tokens_text
    k = k + 1
    a = a + 1
  end

  -- A hash of leases of another type has none: gateways that live write theirs within seconds.
  functions[byte('L')] = function()
    local done = try('HSET', KEYS[k], ARGV[a], now_text)
    if type(done) ~= 'number' then
      if not find(done.err, 'WRONGTYPE', 1, true) then error(done) end
      call('DEL', KEYS[k])
      call('HSET', KEYS[k], ARGV[a], now_text)
    end
    try('HSET', KEYS[k + 1], 'kept', 'x\t\t' .. now_text .. '\t' .. ARGV[a])
    k = k + 2
    a = a + 1
  end

  local DAMAGES = { 'WRONGTYPE', 'not an integer', 'would overflow', 'exhausted the last possible ID' }

  local function is_damage(fault)
    local message = type(fault) == 'table' and fault.err or tostring(fault)
    for _, damage in ipairs(DAMAGES) do
      if find(message, damage, 1, true) then return true end
    end
    return false
  end

  -- Answers for the command in which a Redis call raised `fault`, if that is for damaged data. An admission's was of its wallet:
  -- it takes its token, so that its caller is held to its limit.
  function functions.answer_damaged(fault)
    local letter = string.char(byte(letters, at))
    if not is_damage(fault) or not find('ASRC', letter, 1, true) then error(fault, 0) end
    r = r + 1
    if letter == 'A' then
      local _, tokens, limit = key_bucket(KEYS[k])
      local tokens_text = format('%d', tokens - 60000)
      call('HSET', KEYS[k], 'tokens', tokens_text, 'ts', now_text)
      reply[r] = '8' .. ' ' .. limit .. ' ' .. tokens_text .. ' 0 0'
    else
      reply[r] = NOT_CLOSED
    end
    k = k + (letter == 'S' and 2 or 3)
    a = a + 2
    at = at + 1
  end

  return functions
end

-- One pcall for all commands: 0.1 µs a batch, and one more for each that meets damaged data.
local is_done, fault = pcall(carry_out)
while not is_done do
  rare = rare or rare_commands()
  rare.answer_damaged(fault)
  is_done, fault = pcall(carry_out)
end
return table.concat(reply, ' ')
