--[[
  delete-entries.lua: deletes entries of a stream by their ids, which the writer has read in one go and stored since.

  KEYS   [1] usage
  ARGV   the ids
  Reply  number of entries deleted
]]
-- A page has 1 000 at most: far below what fits on Lua's stack.
return redis.call('XDEL', KEYS[1], unpack(ARGV))
