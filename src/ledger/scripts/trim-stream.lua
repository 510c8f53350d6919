#!lua flags=allow-oom
--[[
  trim-stream.lua: deletes entries of a stream, after the writer has read them as one page and stored them, and leaves the mark of
  their flush; both, or nothing.

  KEYS   [1] usage, [2] mark
  ARGV   [1] the mark that the flush saw ('' for none), [2] its own mark
         [3] id of the last entry of the page, [4] fields of that entry, tab separated ('': not compared)
         [5] id of the first entry: the page has the oldest entries of the stream without gaps; or '', then the ids of all its entries
  Reply  1 deleted; 0 nothing was done: Redis has the mark of another flush, or the last entry is not there as it was read, or with
         [5] the first is not the oldest

  Where another mark is found, another writer has stored what is here since, perhaps in another Postgres; or Redis is older than it was.
  The fields are compared because a Redis that came back empty, with its clock behind, may give the same ids to new entries that nobody
  has stored. Trimming costs 0.2 µs per entry, deleting by id 0.9. Trimming removes every entry up to a given id, so it must be certain
  that all of these were read. They were, if the stream still begins with the first entry read and the last entry is still as it
  was read: ids only grow, and Redis loses the youngest entries first.

  It runs although Redis is full (allow-oom), because it frees memory.
]]
local call = redis.call
local usage = KEYS[1]
local mark = call('GET', KEYS[2]) or ''
if mark ~= ARGV[1] and mark ~= ARGV[2] then return 0 end
local last = call('XRANGE', usage, ARGV[3], ARGV[3])[1]
if not last or (ARGV[4] ~= '' and table.concat(last[2], '\t') ~= ARGV[4]) then return 0 end
if ARGV[5] ~= '' then
  if call('XRANGE', usage, '-', '+', 'COUNT', 1)[1][1] ~= ARGV[5] then return 0 end
  -- XTRIM MINID removes the entries before ARGV[3] and keeps ARGV[3] itself, so XDEL removes that. (XTRIM up to the next id would
  -- remove both, but the largest possible id has no next one.)
  call('XTRIM', usage, 'MINID', '=', ARGV[3])
  call('XDEL', usage, ARGV[3])
else
  -- A page has at most 1 000 ids, far fewer than Lua's stack can take.
  call('XDEL', usage, unpack(ARGV, 6))
end
if mark ~= ARGV[2] then call('SET', KEYS[2], ARGV[2]) end
return 1
