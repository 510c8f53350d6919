--[[
  put-key.lua: sets a key's limit and status, whatever they were before.

  KEYS   [1] key
  ARGV   [1] limit (requests a minute), [2] status
  Reply  1
]]
redis.call('HSET', KEYS[1], 'limit', ARGV[1], 'status', ARGV[2])
return 1
