--[[
  load-key.lua: fills in what decides the requests of a key and of those above it, with values from Postgres, each only if it is absent.

  KEYS   [1] hash of the key, or of the root of its tree
  ARGV   its fields, and their values, by turns (wallets/key-terms.ts)
  Reply  1
]]
for i = 1, #ARGV, 2 do redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) end
return 1
