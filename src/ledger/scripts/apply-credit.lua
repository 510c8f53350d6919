--[[
  apply-credit.lua: adds a committed credit to a loaded wallet, in order, at most once.

  KEYS   [1] wallet
  ARGV   [1] number of the credit within its account, [2] amount (micro-USD)
  Reply  1 applied now, 0 nothing to do (applied before, or not loaded: loading includes it), -1 an earlier credit is missing
]]
local seq = redis.call('HGET', KEYS[1], 'credit_seq')
if not seq then return 0 end
if tonumber(seq) >= tonumber(ARGV[1]) then return 0 end
if tonumber(seq) + 1 ~= tonumber(ARGV[1]) then return -1 end
redis.call('HINCRBY', KEYS[1], 'balance', ARGV[2])
redis.call('HSET', KEYS[1], 'credit_seq', ARGV[1])
return 1
