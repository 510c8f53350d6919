--[[
  delete-stored.lua: deletes the oldest entries of a stream, after the writer has read them as one page and stored them.

  KEYS   [1] usage
  ARGV   [1] id of the first of them, [2] id of the last, [3] fields of the last, tab separated
  Reply  1 deleted; 0 nothing was deleted, because these are not the oldest entries, or not the entries that were read

  Trimming a stream costs 0.2 µs per entry, deleting by id 0.9. Trimming removes every entry up to a given id, so it must be certain
  that all of these were read. They were, if the stream still begins with the first entry read and the last entry is still as it
  was read: ids only grow, and Redis loses the youngest entries first. The fields are compared because a Redis that came back empty,
  with its clock behind, may give the same ids to new entries that nobody has stored.
]]
local call = redis.call
local usage = KEYS[1]
local oldest = call('XRANGE', usage, '-', '+', 'COUNT', 1)[1]
if not oldest or oldest[1] ~= ARGV[1] then return 0 end
local last = call('XRANGE', usage, ARGV[2], ARGV[2])[1]
if not last or table.concat(last[2], '\t') ~= ARGV[3] then return 0 end
-- XTRIM MINID removes the entries before ARGV[2] and keeps ARGV[2] itself, so XDEL removes that. (XTRIM up to the next id would
-- remove both, but the largest possible id has no next one.)
call('XTRIM', usage, 'MINID', '=', ARGV[2])
call('XDEL', usage, ARGV[2])
return 1
