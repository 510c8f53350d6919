--[[
  put-key.lua: sets what decides the requests of a key, whatever it was before, unless it is too late.

  KEYS   [1] hash of the key, or of the root of its tree
  ARGV   [1] latest time for it (ms, Redis's clock): after it the lock may be lost under which the values were read, and newer ones may
         be there
         [2]… its fields, and their values, by turns (wallets/key-terms.ts)
  Reply  1 set; 0 too late: nothing changed
]]
local time = redis.call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 1
