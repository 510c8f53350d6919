#!lua flags=allow-oom
--[[
  batch.lua: every admission and settlement of one event-loop turn of one gateway, in one trip.
  The script may exceed maxmemory (allow-oom): a full Redis must not keep calls from being settled, nor leases from being renewed,
  without which the sweep would take the holds of live gateways. New calls are stopped earlier (admission/backlog.ts).
  Only this script takes a call's money from a wallet into a hold. sweep.lua ends the holds of gateways that died, and gives their
  money back; this script ends all others. (repair-wallet.lua drops holds that an older Redis brought back.)

  KEYS   consumed from left to right: each command below takes the keys it lists.
  ARGV   [1] instance: the owner's id that is written into the holds. Then the arguments of each command. Last, one text with a
         letter for each command. With ARGV[1] alone there are no commands: such a trip shows whether this Redis runs scripts.
  Reply  one text of decimal numbers separated by spaces: each command appends the numbers it lists, in order. An array would
         cost the server one reply per number, and the client one decision about its type.

  'P'  sets the terms for the 'A' commands that follow, up to the next 'P'
         ARGV what an admission takes (micro-USD), free calls of the listing, wallet field of the free calls used
         reply nothing
  'A'  admit a call: checks the key, takes a token, takes a free slot or money, opens the hold
         KEYS bucket, wallet, open
         ARGV usage_id, tail of the hold: account, key, service, provider, method, path, name=value fields; tab separated
         reply code, limit, tokens, balance after the call (micro-USD), 0 or, if a free call serves it, 1 + the free calls left
  'S'  settle a call: removes its hold, appends one usage event
         KEYS open, usage
         ARGV usage_id, settlement (opaque here, see ledger/usage-event.ts)
         reply a closing code, below
  'R'  settle with a refund: as 'S', and gives the hold's money or free slot back to the wallet
         KEYS open, usage, wallet
         ARGV and reply as 'S'
  'K'  settle with capture: as 'S', but only so much of the hold is charged as the service has reported. The rest goes back to the
       wallet. A report above the hold charges the hold; one of a free call charges nothing. The event says what was reported
         KEYS open, usage, wallet
         ARGV usage_id, settlement, amount reported (micro-USD)
         reply a closing code, below
  'C'  cancel an admission whose reply was lost: as 'R'. If there is no hold, it leaves a tombstone: an admission that arrives
       after its cancellation finds the tombstone and does nothing
         KEYS open, usage, wallet
         ARGV and reply as 'S'
  'T'  take one token
         KEYS bucket
         ARGV limit: requests per minute of an address, whose bucket is made on demand; '0' for the bucket of an API key
         reply code, limit, tokens
  'B'  take one token from a bucket beside the one of an API key, whose own tokens stay as they are
         KEYS the key's own bucket, the other one, which is made on demand
         ARGV limit: requests per minute of the other one; '0' for the limit of the key
         reply code, limit and tokens of the other one
  'D'  admit a call of a child key: as 'A', with the state, tokens and budgets of every key above it
         KEYS hash of the root key, wallet, open
         ARGV usage_id, tail of the hold, chain: the ids of the keys from below the root to the key itself, separated by spaces; least
              amount (micro-USD): where the budgets leave less than the terms' amount, but no less than this, that is what the hold takes
         reply as 'A', amount of the hold (micro-USD; 0 for a free call and for one that is not admitted), level in the chain (from 1)
              of the budget that does not cover the call, what is left in it (micro-USD), when it starts again (ms; 0 for never). The balance is what budgets and wallet leave. 0 0 0 with any code but 11
  'E'  take a token for a request of a child key that is no call
         KEYS hash of the root key, a bucket of the child key that is made on demand, or the wallet for the key's own
         ARGV chain, limit: requests per minute of that bucket; '0' for the limit of the key, '' for the bucket of the key itself
         reply code, limit, tokens
  'I'  as 'A', for a call with an idempotency key: it is admitted if nobody has claimed that key, and then the claim is its own
         KEYS claims, times of the claims, then those of 'A'
         ARGV name of the claim, digest of method, path and query; then those of 'A'
         reply as 'A'. A claim of another call is reason for codes 13 to 15, which take one token
  'J'  the same of 'D'. Codes 13 to 16 take a token of the key alone, as 'E' does
  'G'  follows the command that ends a call with a claim, and ends the claim in the same step, if that command has settled the call
         KEYS claims, times of the claims
         ARGV usage_id, name of the claim, digest of the request body ('-': not known), k or n, what the call cost (micro-USD);
              three times '' frees the claim
         reply nothing
  'L'  renew the lease of an instance in a shard
         KEYS lease, open
         ARGV instance
         reply nothing

  Codes (mirrored in admission/codes.ts):
    0 OK   1 RATE_LIMITED   2 KEY_REVOKED   3 KEY_NOT_LOADED   4 WALLET_NOT_LOADED   5 INSUFFICIENT_BALANCE
    6 DUPLICATE: there is a hold or a tombstone of this usage_id already   7 ACCOUNT_SUSPENDED
    8 WALLET_DAMAGED   9 SHARD_DAMAGED: the key of the open holds is of another type
   10 STATUS_UNKNOWN: the key has a status that this version does not know; it was left as it is
   11 BUDGET_EXCEEDED   12 KEY_EXPIRED
   13 CLAIM_OPEN: the call with this idempotency key is under way   14 CLAIM_MISMATCH: it had another method, path or query
   15 CLAIM_CHARGED: it is over, and was charged   16 CLAIMS_FULL: the account has too many claims
  Closing codes (mirrored there, too):
    0 NO_HOLD: there is no hold, as the call was settled or swept before   1 SETTLED now
    2 SETTLED_BESIDE_WALLET: settled now, but the wallet is damaged and got nothing back
    3 HOLD_LEFT: the hold is damaged, or of another version; it was left as it is
    4 NOT_CLOSED: the hash of holds or the stream is damaged; nothing was changed, and the command may be sent again

  `tokens` is in units of 1/60000 of a request, so that a refill of `limit` requests a minute is exactly `limit` units a
  millisecond: integers only. A rejected call changes nothing but its bucket: codes 5, 8, 9, 11 and 13 to 16 have taken its token,
  and a bucket whose time lies in the future gets the present time.
  Tokens of a bucket that is a hash of its own are neither written to the append-only file nor sent to replicas (`put_tokens`): it refills
  within a minute anyway, so a Redis that comes back gives away one full bucket at most. Those of child keys are written, because they
  stand beside what the key has spent of its budget.

  A tree of keys has its terms in the hash of its root, whose limit, status, tokens and ts are the root's. The terms of a key below it are
  a field with its id: limit, status (active or revoked), time at which it expires (ms, 0 for never), budget (micro-USD, - for none), its
  period (total, day, week, month; - for none), number of the budget; separated by spaces. What changes with its calls is a field of that
  name in the wallet (ledger/scripts/includes/child-state.lua): its bucket, and what it and those below it have spent of its budget in
  which period. In a loaded wallet an absent one is a full bucket, and nothing spent.
  A call takes a token of every level, or none, and its money counts in every budget above it. A period is the number of the budget times
  1 000 000, plus the days, weeks (from Monday) or months since 1970-01-01, in UTC; so it only grows. A hold names the periods that it has
  taken from: its last field is budgets=<id>.<period>,<id>.<period> (none: the field is absent).

  Damaged data (a key of another type, a number that HINCRBY refuses, a number beyond 2^53) affect one command, never the batch.
  In each command, a redis.call that may fail comes before all other writes: it raises an error, and `answer_damaged` replies for
  the command. What may fail after a write is called by redis.pcall: if it fails, 'A' undoes its write, while 'R', 'K' and 'C' end
  the call all the same, with closing code 2. Either way the batch goes on with the next command; for that, a command advances the
  counters k, a and r only when it is done. Damaged data that Postgres or time restores (limit, status, leases, a bucket of
  another type) are deleted here; damaged tokens count as a full bucket.
  A damaged wallet is left as it is: an operator repairs it by deleting it.

  ledger/scripts/includes/read-hold.lua describes the texts of holds and tombstones. An event's field 'e1': usage_id, hold,
  settlement, and after 'K' also 'captured=' with the amount reported.
  Redis deletes a hash without fields. In a shard with few calls it would delete `open` and make it again for nearly every call.
  So each lease renewal writes a tombstone that belongs to no call (field 'kept') into `open`. The sweep removes that tombstone
  when no gateway has renewed it for long enough.
]]
local call, try, format, byte, match, find, sub =
  redis.call, redis.pcall, string.format, string.byte, string.match, string.find, string.sub
local KEYS, ARGV = KEYS, ARGV
-- The reply codes of the header and the letters of the commands (byte values) are literals here: a constant that functions share
-- (an upvalue) costs each batch 0.2 µs, and a function that refers to many upvalues up to 1 µs. 60000 is one request in bucket
-- units. 9007199254740991 (2^53 - 1) is the largest integer up to which both Lua and the gateway are exact. Codes, and numbers
-- that the script only passes on, stay text: tostring takes 0.3 µs, and writes numbers from 10^14 on as '1e+14'. Computed numbers
-- are written by '%d', which takes 0.18 µs.

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_text = format('%d', now)
local since = '\t' .. now_text .. '\t' .. ARGV[1] .. '\t'
local price, quota, quota_text, free_field, debit
-- The rate limit that was parsed last, as text and as a number. Most keys of a batch have the same limit, so it is parsed once.
local limit_text, limit_number
local reply, r = {}, 0
local k, a = 1, 2
local rare, chains, rare_commands

-- Writes the tokens of a bucket that is a hash of its own. REPL_NONE is only for writes on which no other data depend: left on, it would
-- lose holds and charges in a crash. So `answer_damaged` ends it too, should a command here fail.
local function put_tokens(bucket, tokens_text, expires)
  redis.set_repl(redis.REPL_NONE)
  call('HSET', bucket, 'tokens', tokens_text, 'ts', now_text)
  -- Any bucket refills within a minute, so a bucket that nobody has touched for 61 s is full: deleting it changes nothing.
  if expires then call('PEXPIRE', bucket, '61000') end
  redis.set_repl(redis.REPL_ALL)
end

-- Returns a bucket's code ('0', or '1' for rate limited) and its tokens now. When Redis's clock was set back, the bucket keeps
-- its tokens, and from then on is refilled by the new time. A bucket without tokens or time counts as full. So does a bucket
-- whose tokens are 'nan' or negative, which this script never writes.
local function refill(bucket, limit, tokens, ts)
  local capacity = limit * 60000
  if not tokens or not ts then return '0', capacity end
  if now > ts then tokens = tokens + (now - ts) * limit end
  if not (tokens <= capacity) then return '0', capacity end
  if tokens >= 60000 then return '0', tokens end
  if tokens < 0 then return '0', capacity end
  if not (ts <= now) then put_tokens(bucket, format('%d', tokens)) end
  return '1', tokens -- rate limited
end

-- Returns the state of an API key's bucket: code, tokens (number), limit (text).
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

-- Whether the balance `found` is an integer lower than `price`. The caller has checked that it has no more characters than
-- `price`.
local function is_lower(found, price)
  return (tonumber(found) or 0) < tonumber(price) and format('%d', tonumber(found) or 0) == found
end

-- Carries out 'A'. HINCRBY comes before all other writes, because it refuses a balance that is
-- not an integer. A call that costs nothing has no HINCRBY of the balance, so here the balance counts as an integer if Lua
-- writes the same text for the number it read. Most balances that are too low have no more characters than the price: their
-- calls are refused before any write. Other balances that are too low (a negative one of many digits) give a negative result of
-- HINCRBY, and `undo` puts the price back.
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
        -- A damaged number ('nan', '1e99', '0x7'). Without this check it would count as a used-up free tier: the buyer would pay.
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
      -- A call that costs nothing needs no money: it is admitted even when the wallet is below zero.
      left = tonumber(found)
      if left and left <= 9007199254740991 and left >= -9007199254740991 and format('%d', left) == found then
        if free == '1' then call('HINCRBY', wallet, free_field, '1') end
        opened = try('HSETNX', KEYS[k + 2], ARGV[a], 'v1\t0\t' .. free .. since .. ARGV[a + 1])
        balance = found
        if free == '1' and opened == 1 then free = format('%d', quota - (tonumber(used) or 0)) end
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
    put_tokens(KEYS[k], tokens_text)
  else
    tokens_text = format('%d', tokens)
  end
  r = r + 1
  reply[r] = code .. ' ' .. limit .. ' ' .. tokens_text .. ' ' .. balance .. ' ' .. free
  k = k + 3
  a = a + 2
end

-- Settles a call without a refund: 'S' and, with `wallet` and `reported`, 'K'. Who removes the hold has the right to act: a
-- command that finds no hold does nothing. The event is appended before the hold is removed, because the stream may refuse the
-- event. @return closing code, nil for no hold
local function settle(open, usage, id, settlement, wallet, reported)
  local hold = call('HGET', open, id)
  if not hold then return nil end
  -- Position of the hold's time. A position beyond 23 means that the amount has more than 16 digits. This short check takes
  -- 0.4 µs less than `read_hold`, which checks all fields.
  local time_at = match(hold, '^v1\t%d+\t[01]\t()')
  if not time_at or time_at > 23 then
    return byte(hold) == 120 and '0' or '3' -- a tombstone, or a hold that is damaged or of another version
  end
  if not reported then
    call('XADD', usage, '*', 'e1', id .. '\t' .. hold .. '\t' .. settlement)
    call('HDEL', open, id)
    return '1'
  end
  call('XADD', usage, '*', 'e1', id .. '\t' .. hold .. '\t' .. settlement .. '\tcaptured=' .. reported)
  -- What is left of the hold goes back as in ledger/scripts/includes/give-back.lua. The amount ends four characters before its time.
  local left, given = sub(hold, 4, time_at - 4) - reported, 0
  if left > 0 and find(hold, '\tbudgets=', time_at, true) then
    rare = rare or rare_commands()
    given = rare.give_back(wallet, hold, format('%d', left), '0', '') and 1
  elseif left > 0 then
    given = try('HINCRBY', wallet, 'balance', format('%d', left))
    -- There was no balance, or it was 0. A loaded wallet has other numbers, too. One that is not loaded must not be made here.
    if given == left and call('HEXISTS', wallet, 'credit_seq') == 0 then call('HDEL', wallet, 'balance') end
  end
  call('HDEL', open, id)
  return type(given) == 'number' and '1' or '2'
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
    elseif letter == 75 then -- K
      local code = settle(KEYS[k], KEYS[k + 1], ARGV[a], ARGV[a + 1], KEYS[k + 2], ARGV[a + 2]) or '0'
      r = r + 1
      reply[r] = code
      k = k + 3
      a = a + 3
    elseif letter == 68 or letter == 69 then -- D, E
      chains = chains or rare_commands(true)
      chains[letter]()
    else
      rare = rare or rare_commands()
      local command = rare[letter] or rare_commands(rare)[letter]
      -- 'I' and 'J' say by which command their call goes on.
      local following, code = command()
      if following == 65 then
        admit()
        rare.take_claim()
      elseif following then
        chains = chains or rare_commands(true)
        chains[following](code)
        if not code then rare.take_claim() end
      end
    end
  end
end

-- Makes the functions that most batches do not need: those of rare commands and damaged data; with `what` true those of calls of child
-- keys; with those of rare commands as `what`, it adds those of calls with idempotency keys. Called when a batch needs them. One function
-- makes all, because each such function costs every batch.
rare_commands = function(what)
  --- @include "../../ledger/scripts/includes/child-state.lua"
  if what == true then
    --- @include "includes/chains.lua"
  end
  if what then
    local functions = what
    --- @include "includes/claims.lua"
  end
  local KEY_NOT_LOADED = '3'
  local SETTLED, SETTLED_BESIDE_WALLET, HOLD_LEFT, NOT_CLOSED = '1', '2', '3', '4'
  local functions = {}

  -- Returns code, tokens and limit for a key that is revoked, suspended, damaged or not loaded. Deletes a damaged limit, status
  -- or bucket: the gateway loads from Postgres what is absent.
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
        return '10', 0, limit -- a status of another version
      else
        call('HDEL', bucket, 'status')
      end
    end
    return KEY_NOT_LOADED, 0, '0'
  end

  -- Called when an admission has opened no hold. If the price or a free call was already taken from the wallet, `undo` puts it
  -- back; it does not touch the token bucket. `left`: balance after the debit; `used`: free calls used before this call, or
  -- false; `opened`: what HSETNX returned, nil if it was not called. @return code that says why the admission failed, balance
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

  --- @include "../../ledger/scripts/includes/read-hold.lua"
  --- @include "../../ledger/scripts/includes/give-back.lua"
  functions.give_back = give_back

  -- Does what `settle` does, and gives the hold's money or free slot back to the wallet before it removes the hold.
  local function refund(open, usage, wallet, id, settlement)
    local hold = call('HGET', open, id)
    if not hold then return nil end
    if byte(hold) == 120 then return '0' end
    local amount, free, _, _, service = read_hold(hold)
    if not amount then return HOLD_LEFT end
    call('XADD', usage, '*', 'e1', id .. '\t' .. hold .. '\t' .. settlement)
    local code = give_back(wallet, hold, amount, free, service) and SETTLED or SETTLED_BESIDE_WALLET
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

  local function on_demand_bucket(bucket, limit)
    local state = try('HMGET', bucket, 'tokens', 'ts')
    if state.err then functions.barred(bucket, state) end
    return refill(bucket, limit, tonumber(state[1]), tonumber(state[2]))
  end

  -- Takes a token if `code` permits it, and replies.
  local function take(bucket, code, limit, tokens, is_on_demand)
    if code == '0' then tokens = tokens - 60000 end
    local tokens_text = format('%d', tokens)
    if code == '0' then put_tokens(bucket, tokens_text, is_on_demand) end
    r = r + 1
    reply[r] = code .. ' ' .. limit .. ' ' .. tokens_text
    a = a + 1
  end

  functions[byte('T')] = function()
    local bucket, limit = KEYS[k], ARGV[a]
    local of_address = limit ~= '0'
    local code, tokens
    if of_address then
      code, tokens = on_demand_bucket(bucket, tonumber(limit))
    else
      code, tokens, limit = key_bucket(bucket)
    end
    take(bucket, code, limit, tokens, of_address)
    k = k + 1
  end

  functions[byte('B')] = function()
    local bucket = KEYS[k + 1]
    local code, tokens, limit = key_bucket(KEYS[k])
    -- An empty bucket of the key is why there is another one. Any other code is about the key itself.
    if code == '0' or code == '1' then
      if ARGV[a] ~= '0' then limit = ARGV[a] end
      code, tokens = on_demand_bucket(bucket, tonumber(limit))
    end
    take(bucket, code, limit, tokens, true)
    k = k + 2
  end

  -- If the key of the leases is of another type, it is deleted: it has no leases, and live gateways write theirs within seconds.
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

  -- Writes the reply to the command whose redis.call raised `fault` because of damaged data; raises any other error again.
  -- In an admission, only the wallet can be damaged. The call is refused but takes a token, so that the rate limit still
  -- binds.
  function functions.answer_damaged(fault)
    redis.set_repl(redis.REPL_ALL)
    local letter = string.char(byte(letters, at))
    if letter == 'I' then letter = 'A' end -- what its claim needs is done
    if not is_damage(fault) or not find('ASRKC', letter, 1, true) then error(fault, 0) end
    r = r + 1
    if letter == 'A' then
      local _, tokens, limit = key_bucket(KEYS[k])
      local tokens_text = format('%d', tokens - 60000)
      put_tokens(KEYS[k], tokens_text)
      reply[r] = '8' .. ' ' .. limit .. ' ' .. tokens_text .. ' 0 0'
    else
      reply[r] = NOT_CLOSED
    end
    k = k + (letter == 'S' and 2 or 3)
    a = a + (letter == 'K' and 3 or 2)
    at = at + 1
  end

  return functions
end

-- One pcall serves the whole batch, and takes 0.1 µs. Each command that meets damaged data takes one more pcall.
local is_done, fault = pcall(carry_out)
while not is_done do
  rare = rare or rare_commands()
  rare.answer_damaged(fault)
  is_done, fault = pcall(carry_out)
end
return table.concat(reply, ' ')
