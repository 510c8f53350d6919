#!lua flags=allow-oom
--[[
  trim-stream.lua: deletes entries of streams, after the writer has read them as pages and stored them, and leaves in each shard the
  mark of their flush; of each page both, or nothing.

  KEYS   for each page: usage, mark
  ARGV   for each page: the mark that the flush saw ('' for none), its own mark,
         id of the last entry of the page, fields of that entry, tab separated ('': not compared),
         id of the first entry: the page has the oldest entries of the stream without gaps; or '', then the number of its entries and
         the ids of all
  Reply  for each page: 1 deleted; 0 nothing was done: Redis has the mark of another flush, or the last entry is not there as it was
         read, or the first is not the oldest

  Where another mark is found, another writer has stored what is here since, perhaps in another Postgres; or Redis is older than it was.
  The fields are compared because a Redis that came back empty, with its clock behind, may give the same ids to new entries that nobody
  has stored. Trimming costs 0.2 µs per entry, deleting by id 0.9. Trimming removes every entry up to a given id, so it must be certain
  that all of these were read. They were, if the stream still begins with the first entry read and the last entry is still as it
  was read: ids only grow, and Redis loses the youngest entries first.

  It runs although Redis is full (allow-oom), because it frees memory.
]]
local call = redis.call

-- `ids`: where in ARGV the ids of the page's entries are, and how many; without them it has the oldest entries of the stream.
local function trim(usage, mark_key, saw, own, last_id, last_fields, first_id, ids, count)
  local mark = call('GET', mark_key) or ''
  if mark ~= saw and mark ~= own then return 0 end
  local last = call('XRANGE', usage, last_id, last_id)[1]
  if not last or (last_fields ~= '' and table.concat(last[2], '\t') ~= last_fields) then return 0 end
  if not ids then
    if call('XRANGE', usage, '-', '+', 'COUNT', 1)[1][1] ~= first_id then return 0 end
    -- XTRIM MINID removes the entries before the last id and keeps the last itself, so XDEL removes that. (XTRIM up to the next id
    -- would remove both, but the largest possible id has no next one.)
    call('XTRIM', usage, 'MINID', '=', last_id)
    call('XDEL', usage, last_id)
  else
    -- A page has at most 1 000 ids, far fewer than Lua's stack can take.
    call('XDEL', usage, unpack(ARGV, ids, ids + count - 1))
  end
  if mark ~= own then call('SET', mark_key, own) end
  return 1
end

local reply, at = {}, 1
for k = 1, #KEYS, 2 do
  local first_id, ids, count = ARGV[at + 4], nil, nil
  if first_id == '' then
    ids, count = at + 6, tonumber(ARGV[at + 5])
  end
  reply[#reply + 1] =
    trim(KEYS[k], KEYS[k + 1], ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], first_id, ids, count)
  at = ids and ids + count or at + 5
end
return reply
