--[[
  charge.lua: meters one call in one trip, as a team would write it that puts Redis behind its proxy. The peers 'nginx-lua' and
  'fastify' run it. It does only a part of what src/admission/scripts/batch.lua does: it has no holds, so a call that fails later
  stays charged, and it has no settlement, so its event has neither status nor latency.

  KEYS   [1] bucket, [2] wallet, [3] usage stream
  ARGV   [1] price (micro-USD), [2] free calls of the listing, [3] wallet field of the free calls used,
         [4] usage id, [5] key, [6] account, [7] service, [8] method, [9] path
  Reply  code (0 ok, 1 rate limited, 2 revoked or unknown, 3 insufficient balance), limit, tokens, balance, free (0|1)

  `tokens` is in units of 1/60000 of a request: a refill of `limit` requests a minute is `limit` units a millisecond.
]]
local call = redis.call
local REQUEST = 60000

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local state = call('HMGET', KEYS[1], 'limit', 'status', 'tokens', 'ts')
if state[2] ~= 'active' then return { 2, 0, 0, 0, 0 } end
local limit = tonumber(state[1])
local capacity = limit * REQUEST
local tokens = tonumber(state[3]) or capacity
local elapsed = now - (tonumber(state[4]) or now)
if elapsed > 0 then tokens = math.min(capacity, tokens + elapsed * limit) end
if tokens < REQUEST then return { 1, limit, tokens, 0, 0 } end

tokens = tokens - REQUEST
call('HSET', KEYS[1], 'tokens', tokens, 'ts', now)

local price, free = tonumber(ARGV[1]), 0
local funds = call('HMGET', KEYS[2], 'balance', ARGV[3])
local balance = tonumber(funds[1]) or 0
if tonumber(ARGV[2]) > 0 and (tonumber(funds[2]) or 0) < tonumber(ARGV[2]) then
  free = 1
  price = 0
end
if price > balance then return { 3, limit, tokens, balance, 0 } end
if free == 1 then
  call('HINCRBY', KEYS[2], ARGV[3], 1)
elseif price > 0 then
  balance = call('HINCRBY', KEYS[2], 'balance', -price)
end

call('XADD', KEYS[3], '*', 'id', ARGV[4], 'key', ARGV[5], 'account', ARGV[6], 'service', ARGV[7],
  'method', ARGV[8], 'path', ARGV[9], 'amount', price, 'free', free)
return { 0, limit, tokens, balance, free }
