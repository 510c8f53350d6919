--[[
  drop-wallets.lua: deletes idle wallets, to be loaded again exactly: each only if it is as it was read.

  KEYS   the wallets
  ARGV   [1] the ticket of the reading, then for each wallet its fields and values as they were read (in-text.lua), without the
         ticket, as one SHA-1 (hex) of all of them, each followed by a NUL
  Reply  for each wallet 1 if it was deleted, else 0

  When it was read, the wallet had no holds and no events. Whatever has begun since changes a field of it; what has begun and ended
  without a change has moved no money. The ticket is there because a Redis that lost data since may have the same wallet beside a hold that
  had ended before the reading.
]]
--- @include "includes/in-text.lua"
local reply = {}
for i, wallet in ipairs(KEYS) do
  local fields = redis.pcall('HGETALL', wallet)
  local read, ticket = {}, nil
  in_text(fields)
  for at = 1, #fields, 2 do
    if fields[at] == 'ticket' then ticket = fields[at + 1]
    else
      read[#read + 1] = fields[at]
      read[#read + 1] = fields[at + 1]
    end
  end
  read[#read + 1] = ''
  if ticket == ARGV[1] and redis.sha1hex(table.concat(read, '\0')) == ARGV[i + 1] then
    redis.call('DEL', wallet)
    reply[i] = 1
  else
    reply[i] = 0
  end
end
return reply
