#!lua flags=allow-oom
--[[
  batch.lua: every admission and settlement of one event-loop turn of one gateway, in one trip.
  It may exceed maxmemory: a full Redis must not stop calls from being settled, nor let the sweep take what it cannot
  renew. New calls are stopped before (admission/backlog.ts).
  The script is the only place where a call's money moves between a wallet and a hold.

  KEYS   consumed from left to right by the operations, as each states.
  ARGV   [1] instance: who is written into the holds. Then operations: an opcode, then its arguments.
  Reply  numbers in decimal, separated by spaces, as one text: each operation appends what it states, in order. An array costs
         the server one reply a number, and the client one decision about its type.

  'L'  renew the lease of an instance in a shard
         KEYS lease
         ARGV instance
         reply nothing
  'T'  take one token
         KEYS bucket
         ARGV limit: requests per minute of an address's bucket, made on demand; '0': the bucket of an API key
         reply code, limit, tokens
  'A'  admit a call: key state, token, free slot or wallet, open hold
         KEYS bucket, wallet, open
         ARGV usage_id, price (micro-USD), free calls of the listing, wallet field of the free calls used,
              tail of the hold: account, key, service, provider, method, path; tab separated
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

  Codes (mirrored in admission/codes.ts):
    0 OK   1 RATE_LIMITED   2 KEY_REVOKED   3 KEY_NOT_LOADED   4 WALLET_NOT_LOADED   5 INSUFFICIENT_BALANCE
    6 DUPLICATE: this usage_id is held or cancelled already   7 ACCOUNT_SUSPENDED

  `tokens` is in units of 1/60000 of a request, so that a refill of `limit` requests a minute is exactly `limit` units a
  millisecond: integers only. A rejected call changes nothing but this: 402 has taken its token.

  A hold's text: amount, free (0|1), admitted at (ms), instance, then the tail; tab separated. A tombstone's: 'x', '', ms, instance.
]]
local call = redis.call
local REQUEST = 60000
local OK, RATE_LIMITED, KEY_REVOKED, KEY_NOT_LOADED = 0, 1, 2, 3
local WALLET_NOT_LOADED, INSUFFICIENT_BALANCE, DUPLICATE, ACCOUNT_SUSPENDED = 4, 5, 6, 7

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local instance = ARGV[1]
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

-- State of an API key's bucket: code, limit, tokens.
local function key_bucket(bucket)
  local state = call('HMGET', bucket, 'limit', 'status', 'tokens', 'ts')
  if not state[1] or not state[2] then return KEY_NOT_LOADED, 0, 0 end
  local limit = tonumber(state[1])
  if state[2] ~= 'active' then
    if state[2] == 'suspended' then return ACCOUNT_SUSPENDED, limit, 0 end
    return KEY_REVOKED, limit, 0
  end
  local tokens = refill(limit, tonumber(state[3]), tonumber(state[4]))
  if tokens < REQUEST then return RATE_LIMITED, limit, tokens end
  return OK, limit, tokens
end

local function address_bucket(bucket, limit)
  local state = call('HMGET', bucket, 'tokens', 'ts')
  local tokens = refill(limit, tonumber(state[1]), tonumber(state[2]))
  if tokens < REQUEST then return RATE_LIMITED, limit, tokens end
  return OK, limit, tokens
end

local function take()
  local bucket, address_limit = KEYS[k], tonumber(ARGV[a + 1])
  k = k + 1
  a = a + 2
  local code, limit, tokens
  if address_limit > 0 then
    code, limit, tokens = address_bucket(bucket, address_limit)
  else
    code, limit, tokens = key_bucket(bucket)
  end
  if code == OK then
    tokens = tokens - REQUEST
    call('HSET', bucket, 'tokens', tokens, 'ts', now)
    -- A bucket nobody touched for a minute is full: forgetting it changes nothing.
    if address_limit > 0 then call('PEXPIRE', bucket, 61000) end
  end
  reply[r + 1], reply[r + 2], reply[r + 3] = code, limit, tokens
  r = r + 3
end

local function admit()
  local bucket, wallet, open = KEYS[k], KEYS[k + 1], KEYS[k + 2]
  local id, price, quota, field, tail = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), ARGV[a + 4], ARGV[a + 5]
  -- As the text it came in: a hold must be read back exactly (see the reply below).
  local held = ARGV[a + 2]
  k = k + 3
  a = a + 6
  local balance, free = 0, 0
  local code, limit, tokens = key_bucket(bucket)
  if code == OK then
    local funds = call('HMGET', wallet, 'balance', field)
    if not funds[1] then
      code = WALLET_NOT_LOADED
    else
      balance = tonumber(funds[1])
      if quota > 0 and price > 0 and (tonumber(funds[2]) or 0) < quota then
        free = 1
        price = 0
        held = '0'
      end
      if price > balance then
        code = INSUFFICIENT_BALANCE
      elseif call('HSETNX', open, id, held .. '\t' .. free .. '\t' .. now .. '\t' .. instance .. '\t' .. tail) == 0 then
        code = DUPLICATE
      elseif free == 1 then
        call('HINCRBY', wallet, field, 1)
      elseif price > 0 then
        balance = call('HINCRBY', wallet, 'balance', -price)
      end
      if code ~= DUPLICATE then
        tokens = tokens - REQUEST
        call('HSET', bucket, 'tokens', tokens, 'ts', now)
      end
    end
  end
  -- Lua writes numbers from 10^14 on as '1e+14'.
  if balance >= 1e14 then balance = string.format('%.0f', balance) end
  reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4], reply[r + 5] = code, limit, tokens, balance, free
  r = r + 5
end

-- Gives back what a hold took. A wallet that is not loaded will be loaded with the money in it.
local function give_back(hold, wallet)
  local amount, free, service = string.match(hold, '^(%d+)\t(%d)\t%d+\t[^\t]*\t[^\t]*\t[^\t]*\t([^\t]*)')
  if free == '1' then
    if call('HEXISTS', wallet, 'balance') == 1 then call('HINCRBY', wallet, 'free:' .. service, -1) end
  elseif amount ~= '0' then
    if call('HEXISTS', wallet, 'balance') == 1 then call('HINCRBY', wallet, 'balance', amount) end
  end
end

-- Removing the hold is the permission to act: whoever does not find it does nothing. `wallet` nil: nothing is given back.
local function close(open, usage, wallet, id, settlement)
  local hold = call('HGET', open, id)
  if not hold then return nil end
  if string.byte(hold) == 120 then return 0 end
  call('HDEL', open, id)
  if wallet then give_back(hold, wallet) end
  call('XADD', usage, '*', 'e', id .. '\t' .. hold .. '\t' .. settlement)
  return 1
end

local function settle()
  r = r + 1
  reply[r] = close(KEYS[k], KEYS[k + 1], nil, ARGV[a + 1], ARGV[a + 2]) or 0
  k = k + 2
  a = a + 3
end

local function refund()
  r = r + 1
  reply[r] = close(KEYS[k], KEYS[k + 1], KEYS[k + 2], ARGV[a + 1], ARGV[a + 2]) or 0
  k = k + 3
  a = a + 3
end

local function cancel()
  local open, id = KEYS[k], ARGV[a + 1]
  local closed = close(open, KEYS[k + 1], KEYS[k + 2], id, ARGV[a + 2])
  if closed == nil then call('HSET', open, id, 'x\t\t' .. now .. '\t' .. instance) end
  r = r + 1
  reply[r] = closed or 0
  k = k + 3
  a = a + 3
end

local function lease()
  call('HSET', KEYS[k], ARGV[a + 1], now)
  k = k + 1
  a = a + 2
end

local operations = { A = admit, S = settle, R = refund, T = take, L = lease, C = cancel }
while a <= #ARGV do
  operations[ARGV[a]]()
end
return table.concat(reply, ' ')
