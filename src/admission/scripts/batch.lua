#!lua flags=allow-oom
--[[
  batch.lua: every admission and settlement of one event-loop turn of one gateway, in one trip.
  It may exceed maxmemory: a full Redis must not stop calls from being settled, nor let the sweep take what it cannot
  renew. New calls are stopped before (admission/backlog.ts).
  The script is the only place where a call's money moves between a wallet and a hold.

  KEYS   consumed from left to right by the operations, as each states.
  ARGV   [1] instance: who is written into the holds. Then what each operation states. The last: a letter for each operation,
         in one text. A run with the first alone has none: it says whether this Redis carries out scripts.
  Reply  numbers in decimal, separated by spaces, as one text: each operation appends what it states, in order. An array costs
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
         reply 1 settled now, 0 there was no hold: somebody else settled it
  'R'  the same with a refund: what the hold took goes back
         KEYS open, usage, wallet
         ARGV and reply as 'S'
  'C'  cancel an admission whose reply was lost: as 'R', and where there is no hold, a tombstone keeps
       the admission from being carried out should it still arrive
         KEYS open, usage, wallet
         ARGV usage_id, settlement
         reply 1 settled now, 0 there was no hold
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

  `tokens` is in units of 1/60000 of a request, so that a refill of `limit` requests a minute is exactly `limit` units a
  millisecond: integers only. A rejected call changes nothing but this: 402 has taken its token.

  A hold's text: amount, free (0|1), admitted at (ms), instance, then the tail; tab separated. A tombstone's: 'x', '', ms, instance.
  A hash without fields is deleted. So that `open` need not be made anew for every other call of a shard that has few, a renewal
  leaves a tombstone of no call in it, which the sweep takes away once nobody renews it.
]]
local call, format, byte = redis.call, string.format, string.byte
local KEYS, ARGV = KEYS, ARGV
local REQUEST = 60000
-- As text, and so is every number that only passes through: to write one as text takes 0.3 µs, and takes numbers from 10^14 on
-- for '1e+14'. Where a number is made, `%d` writes it in 0.18.
local OK, RATE_LIMITED, KEY_REVOKED, KEY_NOT_LOADED = '0', '1', '2', '3'
local WALLET_NOT_LOADED, INSUFFICIENT_BALANCE, DUPLICATE, ACCOUNT_SUSPENDED = '4', '5', '6', '7'

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_text = format('%d', now)
local since = '\t' .. now_text .. '\t' .. ARGV[1] .. '\t'
local price, quota, free_field
local reply, r = {}, 0
local k, a = 1, 2

-- Tokens in a bucket now. A clock that went back refills nothing and takes nothing away.
local function refill(limit, tokens, ts)
  local capacity = limit * REQUEST
  if not tokens then return capacity end
  local elapsed = now - ts
  if elapsed > 0 then tokens = tokens + elapsed * limit end
  if tokens > capacity then return capacity end
  return tokens
end

-- State of an API key's bucket: code, limit (text), tokens (number).
local function key_bucket(bucket)
  local state = call('HMGET', bucket, 'limit', 'status', 'tokens', 'ts')
  local limit, status = state[1], state[2]
  if not limit or not status then return KEY_NOT_LOADED, '0', 0 end
  if status ~= 'active' then
    if status == 'suspended' then return ACCOUNT_SUSPENDED, limit, 0 end
    return KEY_REVOKED, limit, 0
  end
  local tokens = refill(tonumber(limit), tonumber(state[3]), tonumber(state[4]))
  if tokens < REQUEST then return RATE_LIMITED, limit, tokens end
  return OK, limit, tokens
end

local function terms()
  price, quota, free_field = ARGV[a], tonumber(ARGV[a + 1]), ARGV[a + 2]
  if quota == 0 or price == '0' then free_field = nil end
  a = a + 3
end

local function admit()
  local code, limit, tokens = key_bucket(KEYS[k])
  local balance, free = '0', '0'
  if code == OK then
    local wallet, held, used = KEYS[k + 1], price, nil
    if free_field then
      local funds = call('HMGET', wallet, 'balance', free_field)
      balance, used = funds[1], funds[2]
    else
      balance = call('HGET', wallet, 'balance')
    end
    if not balance then
      code, balance = WALLET_NOT_LOADED, '0'
    else
      if free_field and (tonumber(used) or 0) < quota then
        free, held = '1', '0'
      end
      local left = balance - held
      -- What costs nothing asks for no money, of a wallet below zero neither.
      if left < 0 and held ~= '0' then
        code = INSUFFICIENT_BALANCE
      elseif call('HSETNX', KEYS[k + 2], ARGV[a], held .. '\t' .. free .. since .. ARGV[a + 1]) == 0 then
        code = DUPLICATE
      elseif free == '1' then
        call('HINCRBY', wallet, free_field, '1')
      elseif held ~= '0' then
        call('HINCRBY', wallet, 'balance', '-' .. held)
        balance = format('%d', left)
      end
      if code ~= DUPLICATE then tokens = tokens - REQUEST end
    end
  end
  local tokens_text = format('%d', tokens)
  if code == OK or code == INSUFFICIENT_BALANCE then
    call('HSET', KEYS[k], 'tokens', tokens_text, 'ts', now_text)
  end
  r = r + 1
  reply[r] = code .. ' ' .. limit .. ' ' .. tokens_text .. ' ' .. balance .. ' ' .. free
  k = k + 3
  a = a + 2
end

-- Gives back what a hold took. A wallet that is not loaded will be loaded with the money in it.
local function give_back(hold, wallet)
  local amount, free, service = string.match(hold, '^(%d+)\t(%d)\t%d+\t[^\t]*\t[^\t]*\t[^\t]*\t([^\t]*)')
  if free == '1' then
    if call('HEXISTS', wallet, 'balance') == 1 then call('HINCRBY', wallet, 'free:' .. service, '-1') end
  elseif amount ~= '0' then
    if call('HEXISTS', wallet, 'balance') == 1 then call('HINCRBY', wallet, 'balance', amount) end
  end
end

-- Removing the hold is the permission to act: whoever does not find it does nothing. `wallet` nil: nothing is given back.
local function close(open, usage, wallet, id, settlement)
  local hold = call('HGET', open, id)
  if not hold then return nil end
  if byte(hold) == 120 then return '0' end
  call('HDEL', open, id)
  if wallet then give_back(hold, wallet) end
  call('XADD', usage, '*', 'e', id .. '\t' .. hold .. '\t' .. settlement)
  return '1'
end

local function settle()
  r = r + 1
  reply[r] = close(KEYS[k], KEYS[k + 1], nil, ARGV[a], ARGV[a + 1]) or '0'
  k = k + 2
  a = a + 2
end

-- What most batches have none of: functions cost 0.04 µs each to make.
local function rare_operations()
  local function address_bucket(bucket, limit)
    local state = call('HMGET', bucket, 'tokens', 'ts')
    local tokens = refill(limit, tonumber(state[1]), tonumber(state[2]))
    if tokens < REQUEST then return RATE_LIMITED, tokens end
    return OK, tokens
  end

  local function take()
    local bucket, limit = KEYS[k], ARGV[a]
    local of_address = limit ~= '0'
    local code, tokens
    if of_address then
      code, tokens = address_bucket(bucket, tonumber(limit))
    else
      code, limit, tokens = key_bucket(bucket)
    end
    if code == OK then tokens = tokens - REQUEST end
    local tokens_text = format('%d', tokens)
    if code == OK then
      call('HSET', bucket, 'tokens', tokens_text, 'ts', now_text)
      -- A bucket nobody touched for a minute is full: forgetting it changes nothing.
      if of_address then call('PEXPIRE', bucket, '61000') end
    end
    r = r + 1
    reply[r] = code .. ' ' .. limit .. ' ' .. tokens_text
    k = k + 1
    a = a + 1
  end

  local function refund()
    r = r + 1
    reply[r] = close(KEYS[k], KEYS[k + 1], KEYS[k + 2], ARGV[a], ARGV[a + 1]) or '0'
    k = k + 3
    a = a + 2
  end

  local function cancel()
    local open, id = KEYS[k], ARGV[a]
    local closed = close(open, KEYS[k + 1], KEYS[k + 2], id, ARGV[a + 1])
    if closed == nil then call('HSET', open, id, 'x\t\t' .. now_text .. '\t' .. ARGV[1]) end
    r = r + 1
    reply[r] = closed or '0'
    k = k + 3
    a = a + 2
  end

  local function lease()
    call('HSET', KEYS[k], ARGV[a], now_text)
    call('HSET', KEYS[k + 1], 'kept', 'x\t\t' .. now_text .. '\t' .. ARGV[a])
    k = k + 2
    a = a + 1
  end

  return { [byte('R')] = refund, [byte('T')] = take, [byte('L')] = lease, [byte('C')] = cancel }
end

local ADMIT, SETTLE, TERMS = 65, 83, 80
local letters, rare = #ARGV > 1 and ARGV[#ARGV] or '', nil
for i = 1, #letters do
  local letter = byte(letters, i)
  if letter == ADMIT then
    admit()
  elseif letter == SETTLE then
    settle()
  elseif letter == TERMS then
    terms()
  else
    rare = rare or rare_operations()
    rare[letter]()
  end
end
return table.concat(reply, ' ')
