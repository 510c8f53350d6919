--[[
  read-answer.lua: reads a claim (admission/scripts/includes/claims.lua), and the answer to the call that has it.

  KEYS   [1] claims of the account, [2] answers of the shard, [3] open
  ARGV   [1] name of the claim
  Reply  {now (ms), text of the claim, answer}; '' for what is not there

  As in claims.lua, a claim that is open without its hold counts as charged. The answer to its call is not kept.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local claim = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(claim) ~= 'string' then return { now, '', '' } end
local id = string.match(claim, '^%a\t([^\t]+)\t') or ''
if string.sub(claim, 1, 2) == 'o\t' and redis.pcall('HEXISTS', KEYS[3], id) == 0 then claim = 'n' .. string.sub(claim, 2) end
local answer = redis.pcall('HGET', KEYS[2], id)
return { now, claim, type(answer) == 'string' and answer or '' }
