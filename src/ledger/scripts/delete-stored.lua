--[[
  delete-stored.lua: deletes the oldest entries of a stream, after the writer has read them as one page and stored them.

  KEYS   [1] usage
  ARGV   [1] id of the first of them, [2] id of the last, [3] fields of the last, tab separated
  Reply  1 deleted; 0 nothing was deleted, because these are not the oldest entries, or not the entries that were read

  Trimming a stream costs 0.2 µs per entry, deleting by id 0.9. Trimming removes every entry up to a bound, so it must be certain
  that all of them were read. That is certain while the last entry is still as it was read: ids only grow, and Redis loses the
  youngest entries first. A Redis that came back empty with its clock behind may have other entries, even with the same ids,
  that nobody has stored; their fields differ.
]]
local call = redis.call
local usage = KEYS[1]
local oldest = call('XRANGE', usage, '-', '+', 'COUNT', 1)[1]
if not oldest or oldest[1] ~= ARGV[1] then return 0 end
local last = call('XRANGE', usage, ARGV[2], ARGV[2])[1]
if not last or table.concat(last[2], '\t') ~= ARGV[3] then return 0 end
-- MINID removes the entries before ARGV[2] and keeps that one, so XDEL removes it. (The next id as MINID would remove it too, but
-- the largest possible id has none.)
call('XTRIM', usage, 'MINID', '=', ARGV[2])
call('XDEL', usage, ARGV[2])
return 1
