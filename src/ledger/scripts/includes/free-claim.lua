--[[
  free_claim(claims, times, name, id): deletes the claim of a call that charged nothing (admission/scripts/includes/claims.lua), so that
  its idempotency key is free again. A claim that another call has taken since stays.

  @param name  as the hold names it; `id`: usage id of the call
]]
local function free_claim(claims, times, name, id)
  local claim = redis.pcall('HGET', claims, name)
  if type(claim) == 'string' and string.find(claim, '^%a\t') and string.sub(claim, 3, #id + 3) == id .. '\t' then
    redis.call('HDEL', claims, name)
    redis.pcall('ZREM', times, name)
  end
end
