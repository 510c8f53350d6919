#!lua
--[[
  keep-answer.lua: keeps the answer to a call with an idempotency key, for 24 hours at most. It is refused if Redis is full (no
  allow-oom): nobody is charged again for an answer that is not kept.

  KEYS   [1] answers of the shard (hash): usage_id → answer; 'bytes' → bytes of all; account → bytes of its own
         [2] when each was kept (sorted set, µs, so that answers of one millisecond have an order): '<usage_id> <account>'
         [3] the same of the account: usage_id
  ARGV   [1] usage_id, [2] account, [3] answer
         [4] maximum answers of an account, [5] their maximum bytes, [6] maximum bytes of the shard
  Reply  1 kept; 0: the shard has no room

  Bytes are those of the text, and BESIDE of each answer, which its names and its entries in both indexes take: without these, a flood of
  short answers would take more than twice as much of Redis as it may.
  Only the answers of the account make room for its next one. What is older than 24 hours is deleted first, of any account; what the
  third key still has of it is deleted by the next answer of that account.
]]
local call = redis.call
local answers, times, own = KEYS[1], KEYS[2], KEYS[3]
local id, account, answer = ARGV[1], ARGV[2], ARGV[3]
local most_of_account, most_of_shard = tonumber(ARGV[5]), tonumber(ARGV[6])
local DAY_MS, DROPPED, BESIDE = 86400000, 64, 512
local size = #answer + BESIDE
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local a_day_ago = now - DAY_MS * 1000

local function bytes_of(field) return tonumber(call('HGET', answers, field) or 0) end

local function drop(its_id, its_account)
  local length = call('HSTRLEN', answers, its_id)
  call('ZREM', times, its_id .. ' ' .. its_account)
  if call('HDEL', answers, its_id) == 0 then return end
  call('HINCRBY', answers, 'bytes', -(length + BESIDE))
  if call('HINCRBY', answers, its_account, -(length + BESIDE)) <= 0 then call('HDEL', answers, its_account) end
end

for _, member in ipairs(call('ZRANGEBYSCORE', times, '-inf', a_day_ago, 'LIMIT', 0, DROPPED)) do
  drop(string.match(member, '^(%S+) (%S+)$'))
end
call('ZREMRANGEBYSCORE', own, '-inf', a_day_ago)
while call('ZCARD', own) >= tonumber(ARGV[4]) or bytes_of(account) + size > most_of_account do
  local oldest = call('ZRANGE', own, 0, 0)[1]
  if not oldest then break end
  drop(oldest, account)
  call('ZREM', own, oldest)
end
if bytes_of('bytes') + size > most_of_shard then return 0 end
call('HSET', answers, id, answer)
call('HINCRBY', answers, 'bytes', size)
call('HINCRBY', answers, account, size)
call('ZADD', times, now, id .. ' ' .. account)
call('ZADD', own, now, id)
for i = 1, 3 do call('PEXPIRE', KEYS[i], DAY_MS) end
return 1
