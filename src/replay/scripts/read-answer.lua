--[[
  read-answer.lua: reads a claim (admission/scripts/includes/claims.lua), and the answer to the call that has it.

  KEYS   [1] claims of the account, [2] answers of the shard, [3] open
  ARGV   [1] name of the claim
  Reply  {now (ms), text of the claim, answer}; '' for what is not there, or is older than 24 hours. A claim that is open although its
         call has no hold any more is replied as that of a charged call whose answer is not kept: Redis has lost how the call ended
]]
local DAY_MS = 86400000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local claim = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(claim) ~= 'string' then return { now, '', '' } end
local id, since = string.match(claim, '^%a\t([^\t]+)\t(%d+)\t')
if since and now - since >= DAY_MS then return { now, '', '' } end
id = id or ''
if string.sub(claim, 1, 1) == 'o' and redis.pcall('HEXISTS', KEYS[3], id) == 0 then claim = 'n' .. string.sub(claim, 2) end
local answer = redis.pcall('HGET', KEYS[2], id)
return { now, claim, type(answer) == 'string' and answer or '' }
