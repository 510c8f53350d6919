--[[
  unread_entries(usage, last, fields, most): reads a stream on after the last entry that somebody has read of it; from its oldest entry on,
  if that one is not there as it was read (`fields`: tab separated, '': not compared).

  Ids do not tell what was read. A stream that begins anew, after FLUSHALL, may have smaller ones: Redis's clock was ahead before.

  @return at most `most` entries; whether the last one that was read is there
]]
local function unread_entries(usage, last, fields, most)
  local entry = last ~= '' and redis.call('XRANGE', usage, last, last)[1]
  local is_there = entry and (fields == '' or table.concat(entry[2], '\t') == fields)
  return redis.call('XRANGE', usage, is_there and '(' .. last or '-', '+', 'COUNT', most), is_there
end
