--[[
  delete-entries.lua: deletes entries of a stream by their ids, after the writer has read them as one page and stored them.

  KEYS   [1] usage
  ARGV   the ids
  Reply  number of entries deleted
]]
-- A page has at most 1 000 ids, far fewer than Lua's stack can take.
return redis.call('XDEL', KEYS[1], unpack(ARGV))
