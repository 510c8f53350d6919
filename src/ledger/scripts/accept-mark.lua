#!lua flags=allow-oom
--[[
  accept-mark.lua: sets the mark of a shard, after an operator has accepted that Postgres lacks the flush of the former mark.

  KEYS   [1] mark
  ARGV   [1] the ASCII characters of the former mark, [2] the new mark
  Reply  1 set; 0 Redis has another mark
]]
-- Other bytes are in damaged marks only, and the text that a client makes of them cannot be compared.
local found = string.gsub(redis.call('GET', KEYS[1]) or '', '[\128-\255]', '')
if found ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
