--[[
  read-answer.lua: reads a claim (admission/scripts/includes/claims.lua), and the answer to the call that has it.

  KEYS   [1] claims of the account, [2] answers of the shard
  ARGV   [1] name of the claim
  Reply  {now (ms), text of the claim, answer}; '' for what is not there
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local claim = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(claim) ~= 'string' then return { now, '', '' } end
local answer = redis.pcall('HGET', KEYS[2], string.match(claim, '^%a\t([^\t]+)\t') or '')
return { now, claim, type(answer) == 'string' and answer or '' }
