--[[
  claims.lua: the commands of calls with an idempotency key, 'I', 'J' and 'G' of batch.lua. A claim says which call of an API key has
  which idempotency key. It is a field of the account's claims, and a member of their times (a sorted set, ms), by which they are counted
  and deleted after 24 hours. The field's name is a digest of both keys. Its text, tab separated:

    o, k or n       the call is open; it was charged, and its answer is being kept; it was charged, and its answer is not kept
    usage_id
    claimed at (ms)
    digest of method, path and query
    digest of the request body; '-': not known
    charged at (ms); 0: not yet
    what the call cost (micro-USD), once it was charged

  Included where batch.lua makes what most batches do not need, so it sees that file's locals. Nothing here raises an error for damaged
  data: claims that are of another type are deleted, as they have none, and a text that cannot be read counts as charged.
]]
--- @include "../../../ledger/scripts/includes/free-claim.lua"
-- How long a claim lives (ms), and how many of an account may. Each claim deletes up to PRUNED older ones, so none that is over counts
-- for long.
local CLAIM_MS, MAX_CLAIMS, PRUNED = 86400000, 100000, 16

-- The claim that the command asks for.
local claims, times, name, target, id

-- A read of a key that may be of another type. @return what it replied; what an absent key would, if it was, and is deleted
local function read_or_delete(command, key, ...)
  local found = try(command, key, ...)
  if type(found) ~= 'table' or not found.err then return found end
  if not find(found.err, 'WRONGTYPE', 1, true) then error(found) end
  call('DEL', key)
  return call(command, key, ...)
end

-- Deletes the oldest claims that are over. @return whether there is room for another one
local function make_room()
  local over = read_or_delete('ZRANGEBYSCORE', times, '-inf', now - CLAIM_MS, 'LIMIT', '0', PRUNED)
  if #over > 0 then
    call('ZREM', times, unpack(over))
    call('HDEL', claims, unpack(over))
  end
  return call('ZCARD', times) < MAX_CLAIMS
end

-- @return why the call is not admitted; nil: nobody has claimed its key
local function look(open)
  local claim = read_or_delete('HGET', claims, name)
  if claim then
    local state, whose, since, its_target = match(claim, '^([okn])\t([^\t]+)\t(%d+)\t([^\t]+)\t')
    if not state then return '15' end
    if now - since < CLAIM_MS then
      if its_target ~= target then return '14' end
      -- Without its hold the call is over, although Redis has lost how: nobody may be charged a second time.
      if state == 'o' and try('HEXISTS', open, whose) ~= 0 then return '13' end
      return '15'
    end
    call('HDEL', claims, name)
  end
  if not make_room() then return '16' end
end

-- Reads the claim's part of the command, and leaves the rest to the following one.
local function begin()
  claims, times, name, target, id = KEYS[k], KEYS[k + 1], ARGV[a], ARGV[a + 1], ARGV[a + 2]
  local code = look(KEYS[k + 4])
  k = k + 2
  a = a + 2
  return code
end

functions[byte('I')] = function()
  local code = begin()
  if not code then return 65 end
  local key_code, tokens, limit = key_bucket(KEYS[k])
  if key_code == '0' then
    key_code, tokens = code, tokens - 60000
    put_tokens(KEYS[k], format('%d', tokens))
  end
  r = r + 1
  reply[r] = key_code .. ' ' .. limit .. format(' %d 0 0', tokens)
  k = k + 3
  a = a + 2
end

functions[byte('J')] = function()
  local code = begin()
  return code and 'refuse' or 68, code
end

-- Takes the claim, if the call was admitted. Its keys were read before, so that nothing can fail here.
function functions.take_claim()
  if sub(reply[r], 1, 2) ~= '0 ' then return end
  call('HSET', claims, name, 'o\t' .. id .. '\t' .. now_text .. '\t' .. target .. '\t-\t0')
  call('ZADD', times, now_text, name)
  call('PEXPIRE', claims, CLAIM_MS)
  call('PEXPIRE', times, CLAIM_MS)
end

functions[byte('G')] = function()
  local ended = reply[r]
  if ended == '1' or ended == '2' then
    local its_claims, whose, its_name, digest = KEYS[k], ARGV[a], ARGV[a + 1], ARGV[a + 2]
    if digest == '' then
      free_claim(its_claims, KEYS[k + 1], its_name, whose)
    else
      local claim = try('HGET', its_claims, its_name)
      local rest = type(claim) == 'string' and match(claim, '^o(\t[^\t]+\t%d+\t[^\t]+\t)')
      if rest and sub(rest, 2, #whose + 2) == whose .. '\t' then
        call('HSET', its_claims, its_name, ARGV[a + 3] .. rest .. digest .. '\t' .. now_text .. '\t' .. ARGV[a + 4])
      end
    end
  end
  k = k + 2
  a = a + 5
end

return functions
