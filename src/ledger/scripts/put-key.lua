--[[
  put-key.lua: sets what decides the requests of a key, whatever it was before.

  KEYS   [1] hash of the key, or of the root of its tree
  ARGV   its fields, and their values, by turns (wallets/key-terms.ts)
  Reply  1
]]
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
