--[[
  load-key.lua: fills the limit and status of a key from Postgres, each unless it is there already.

  KEYS   [1] key
  ARGV   [1] limit (requests a minute), [2] status
  Reply  1
]]
redis.call('HSETNX', KEYS[1], 'limit', ARGV[1])
redis.call('HSETNX', KEYS[1], 'status', ARGV[2])
return 1
