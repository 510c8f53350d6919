#!lua flags=allow-oom
--[[
  accept-mark.lua: sets the mark of a shard, where an operator has accepted that Postgres lacks the flush of the mark before.

  KEYS   [1] mark
  ARGV   [1] the mark before, as it was read, [2] the new mark
  Reply  1 set; 0 Redis has another mark
]]
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
