--[[
  put-key.lua: sets the limit and status of a key, whatever they were.

  KEYS   [1] key
  ARGV   [1] limit (requests a minute), [2] status
  Reply  1
]]
redis.call('HSET', KEYS[1], 'limit', ARGV[1], 'status', ARGV[2])
return 1
