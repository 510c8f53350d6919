#!lua
--[[
  keep-answer.lua: keeps the answer to a call with an idempotency key, for 24 hours at most. It is refused where Redis is full (no
  allow-oom): nobody is charged again for an answer that is not kept.

  KEYS   [1] answers of the shard (hash): usage_id → answer; 'bytes' → bytes of all; account → bytes of its own
         [2] when each was kept (sorted set, µs, so that answers of one millisecond have an order): '<usage_id> <account>'
         [3] the same of the account: usage_id
  ARGV   [1] usage_id, [2] account, [3] answer
         [4] maximum answers of an account, [5] their maximum bytes, [6] maximum bytes of the shard
  Reply  1 kept; 0: the shard has no room

  Only the answers of the account make room for its next one. What is older than 24 hours is deleted first, of any account; what the
  third key still has of it is deleted by the next answer of that account.
]]
local call = redis.call
local answers, times, own = KEYS[1], KEYS[2], KEYS[3]
local id, account, answer = ARGV[1], ARGV[2], ARGV[3]
local most_of_account, most_of_shard = tonumber(ARGV[5]), tonumber(ARGV[6])
local DAY_MS, DROPPED = 86400000, 64
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local a_day_ago = now - DAY_MS * 1000

local function bytes_of(field) return tonumber(call('HGET', answers, field) or 0) end

local function drop(its_id, its_account)
  local size = call('HSTRLEN', answers, its_id)
  call('HDEL', answers, its_id)
  call('ZREM', times, its_id .. ' ' .. its_account)
  call('HINCRBY', answers, 'bytes', -size)
  if call('HINCRBY', answers, its_account, -size) <= 0 then call('HDEL', answers, its_account) end
end

for _, member in ipairs(call('ZRANGEBYSCORE', times, '-inf', a_day_ago, 'LIMIT', 0, DROPPED)) do
  drop(string.match(member, '^(%S+) (%S+)$'))
end
call('ZREMRANGEBYSCORE', own, '-inf', a_day_ago)
while call('ZCARD', own) >= tonumber(ARGV[4]) or bytes_of(account) + #answer > most_of_account do
  local oldest = call('ZRANGE', own, 0, 0)[1]
  if not oldest then break end
  drop(oldest, account)
  call('ZREM', own, oldest)
end
if bytes_of('bytes') + #answer > most_of_shard then return 0 end
call('HSET', answers, id, answer)
call('HINCRBY', answers, 'bytes', #answer)
call('HINCRBY', answers, account, #answer)
call('ZADD', times, now, id .. ' ' .. account)
call('ZADD', own, now, id)
for i = 1, 3 do call('PEXPIRE', KEYS[i], DAY_MS) end
return 1
