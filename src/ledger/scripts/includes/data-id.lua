--[[
  data_id(): says which Redis answers, and which data it has (`RedisRun`).

  @return run_id and master_replid, with a space between them
]]
local function data_id()
  local info = redis.call('INFO', 'server', 'replication')
  return (string.match(info, 'run_id:(%x+)') or '') .. ' ' .. (string.match(info, 'master_replid:(%x+)') or '')
end
