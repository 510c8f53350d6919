--[[
  delete-stored.lua: deletes the oldest entries of a stream, which the writer has read in one go and stored since.

  KEYS   [1] usage
  ARGV   [1] id of the first of them, [2] of the last, [3] fields of the last, tab separated
  Reply  1 deleted, 0 they are not the oldest entries, or not those that were read: nothing was deleted

  To trim a stream costs 0.2 µs an entry, to delete by id 0.9. It takes all entries up to a bound, so it must be certain that
  all of them were read. They were where the last one still is: ids only grow, and Redis loses the youngest entries first. A
  Redis that came back empty with its clock behind has others there, of the same ids even: nobody has stored those.
]]
local call = redis.call
local usage = KEYS[1]
local oldest = call('XRANGE', usage, '-', '+', 'COUNT', 1)[1]
if not oldest or oldest[1] ~= ARGV[1] then return 0 end
local last = call('XRANGE', usage, ARGV[2], ARGV[2])[1]
if not last or table.concat(last[2], '\t') ~= ARGV[3] then return 0 end
-- The bound itself stays, and not every id has one after it to be the bound instead.
call('XTRIM', usage, 'MINID', '=', ARGV[2])
call('XDEL', usage, ARGV[2])
return 1
