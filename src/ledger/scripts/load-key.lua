--[[
  load-key.lua: fills a key's limit and status with values from Postgres, each only if it is absent.

  KEYS   [1] key
  ARGV   [1] limit (requests a minute), [2] status
  Reply  1
]]
redis.call('HSETNX', KEYS[1], 'limit', ARGV[1])
redis.call('HSETNX', KEYS[1], 'status', ARGV[2])
return 1
