--[[
  chains.lua: the commands of child keys, 'D' and 'E' of batch.lua. A child's chain is the keys from its root to itself. The root's
  hash has the terms of all of them, and the wallet their buckets and what their budgets have spent. Level 1 is below the root, and the
  last level is the key itself.

  Included where batch.lua makes what most batches do not need, so it sees that file's locals, and child_state of
  ledger/scripts/includes/child-state.lua. Damaged data never raise an error here: all that could fail is read or tried before the first
  write.
]]
local floor, min, max = math.floor, math.min, math.max
local pack, unpack_state, unpack, tonumber = struct.pack, struct.unpack, unpack, tonumber
--- @include "../../../ledger/scripts/includes/integer.lua"

-- What calls of one batch have in common: terms that were parsed, by text, and the price that was parsed last.
local known_terms = {}
local price_text, price_number

-- The chain of the command: its number of levels, and by level the ids, terms, tokens now, and what is spent in which period (of a
-- budget the present one). All these tables are used again for each command: making them anew for each took a third of its time.
local n, last_chain = 0, nil
local ids, terms, tokens_of, spent, periods = {}, {}, {}, {}, {}
-- Names and values to write to the wallet, of level i from 2i - 1 on.
local writes = {}

local function read_chain(text)
  local from, i = 1, 0
  repeat
    local to = find(text, ' ', from, true)
    local id = sub(text, from, to and to - 1)
    i = i + 1
    ids[i], writes[2 * i - 1] = id, id
    from = to and to + 1
  until not to
  n, last_chain = i, text
end

--- @include "periods.lua"

-- What the key's terms say. nil: damaged
local function parse_terms(text)
  local limit, status, expires, amount, kind, number =
    match(text, '^([1-9]%d*) ([a-z_]+) (%d+) (%S+) (%S+) (%d+)$')
  if not limit or #limit > 9 or not integer(expires) or #number > 9 then return nil end
  local its = { limit = tonumber(limit), limit_text = limit, capacity = limit * 60000, code = '0', kind = kind }
  if amount ~= '-' then
    local budget, present = integer(amount), present_of(kind)
    if not budget or budget < 0 or not present then return nil end
    its.budget, its.present = budget, number * 1000000 + present
    its.present_text = '.' .. format('%d', its.present)
  end
  if status ~= 'active' then
    its.code = status == 'revoked' and '2' or '10'
  elseif expires ~= '0' and now >= tonumber(expires) then
    its.code = '12'
  end
  known_terms[text] = its
  return its
end

-- Reads the state of all keys of the chain, and their `terms`. @return code, state as HMGET replied it
-- After any code but 3 (key not loaded) the terms of all levels are there.
local function look_at(root)
  local levels, known, its_terms = n, known_terms, terms
  local state, code = try('HMGET', root, 'limit', 'status', 'tokens', 'ts', unpack(ids, 1, levels)), '0'
  local limit = state[1]
  if limit ~= limit_text or state[2] ~= 'active' then
    if not limit or state[2] ~= 'active' or #limit > 9 or not match(limit, '^[1-9]%d*$') then
      rare = rare or rare_commands()
      code = rare.barred(root, state)
      if code == '3' then return code end
    else
      limit_text, limit_number = limit, tonumber(limit)
    end
  end
  for i = 1, levels do
    local text = state[4 + i]
    local its = known[text] or (text and parse_terms(text))
    if not its then
      if text then call('HDEL', root, ids[i]) end
      return '3'
    end
    its_terms[i] = its
    if code == '0' then code = its.code end
  end
  return code, state
end

-- As `refill` of batch.lua, without a write.
local function tokens_in(limit, tokens, ts)
  local capacity = limit * 60000
  if not tokens or not ts then return capacity end
  if now > ts then tokens = tokens + (now - ts) * limit end
  return tokens >= 0 and tokens <= capacity and tokens or capacity
end

-- Takes what the wallet has of each level out of `funds`, where level 1 follows `at`. A period that is later than the clock says stays: a
-- clock that was set back opens no older one. A negative spending is a drift, which no call changes: it counts as 0, and goes on from
-- where it is.
-- @return the fewest tokens of any level, or of the root if it has fewer; what is left in the budget with the least (nil: no level has
-- one). nil: a level is damaged
local function look_at_levels(funds, at, fewest)
  local its_terms, its_tokens, its_spent, its_periods, time = terms, tokens_of, spent, periods, now
  local least
  for i = 1, n do
    local its, text = its_terms[i], funds[at + i]
    local tokens, used, period = its.capacity, 0, 0
    if text then
      local left, ts
      left, ts, used, period = child_state(text)
      if not left then return nil end
      if time > ts then left = left + (time - ts) * its.limit end
      if left >= 0 and left <= tokens then tokens = left end
    end
    its_tokens[i] = tokens
    if tokens < fewest then fewest = tokens end
    local budget = its.budget
    if budget then
      if period < its.present then used, period = 0, its.present end
      local left = used < 0 and budget or used > budget and 0 or budget - used
      if not least or left < least then least = left end
    end
    its_spent[i], its_periods[i] = used, period
  end
  return fewest, least
end

-- Called when a bucket is empty, of the root or of the `levels` below it. Where Redis's clock was set back, the bucket keeps its tokens,
-- and is refilled by the new time.
-- @return how many tokens the key's own bucket would have if it had to wait as long as the one that has to wait longest: a caller that waits
-- for it has waited for all
local function wait_for_tokens(root, root_tokens, root_ts, levels, wallet, funds, at)
  local longest = 0
  if root_tokens < 60000 then
    longest = (60000 - root_tokens) / limit_number
    if root_ts > now then put_tokens(root, format('%d', root_tokens)) end
  end
  for i = 1, levels do
    local tokens = tokens_of[i]
    if tokens < 60000 then
      longest = max(longest, (60000 - tokens) / terms[i].limit)
      local _, ts, used, period = child_state(funds[at + i])
      if ts > now then call('HSET', wallet, ids[i], pack(CHILD, tokens, now, used, period)) end
    end
  end
  return format('%d', floor(60000 - longest * terms[n].limit))
end

-- The end of the reply to a call that the budgets do not cover. Of several that do not, it names the one that starts again last, so
-- that waiting for it is enough.
local function exceeded(least_amount)
  local level, left, last
  for i = 1, n do
    local its = terms[i]
    local rest = its.budget and max(0, its.budget - max(0, spent[i]))
    if rest and rest < least_amount then
      local again = starts_again(its.kind, periods[i])
      if not last or (last > 0 and (again == 0 or again > last)) then level, left, last = i, rest, again end
    end
  end
  return format(' %d %d %d', level, left, last)
end

-- The end of the reply, after the tokens, where nothing is taken and no budget is exceeded.
local NOTHING = ' 0 0 0 0 0 0'

-- Writes to the wallet that the call has taken a token of each level, and with it `field` and `value`. Nothing is spent.
local function write_tokens(wallet, funds, at, field, value)
  for i = 1, n do
    local used, period = 0, 0
    if funds[at + i] then
      local _
      _, _, used, period = child_state(funds[at + i])
    end
    writes[2 * i] = pack(CHILD, tokens_of[i] - 60000, now, used, period)
  end
  if field then
    call('HSET', wallet, field, value, unpack(writes, 1, 2 * n))
  else
    call('HSET', wallet, unpack(writes, 1, 2 * n))
  end
end

-- Puts into `writes` that each level has lost a token, and each budget `amount`. @return the last field of the hold, which says in which
-- period of each budget it counts
local function spend(amount)
  local field, before = '', '\tbudgets='
  for i = 1, n do
    local used, period = spent[i], periods[i]
    if terms[i].budget then
      used = used + amount
      field, before = field .. before .. ids[i] .. format('.%d', period), ','
    end
    writes[2 * i] = pack(CHILD, tokens_of[i] - 60000, now, used, period)
  end
  return field
end

-- Takes a call's money from the wallet, counts it in the budgets, opens its hold and takes a token of each level. The hold comes first:
-- its shard may be damaged, while the wallet has been read, so that nothing written to it can fail.
-- @param used  free calls used; `least`: what is left in the budgets, nil if there are none
-- @return code, rest of the reply after the tokens
local function charge(wallet, open, funds, at, balance, used, least)
  if price ~= price_text then price_text, price_number = price, tonumber(price) end
  local amount, text, free = price_number, price, '0'
  if free_field and used < quota then amount, text, free = 0, '0', '1' end
  if least and amount > least then
    local least_amount = tonumber(ARGV[a + 3])
    if least < least_amount then
      write_tokens(wallet, funds, at)
      return '11', format(' %d ', min(balance, least)) .. free .. ' 0' .. exceeded(least_amount)
    end
    amount, text = least, format('%d', least)
  end
  if amount > 0 and amount > balance then
    write_tokens(wallet, funds, at)
    return '5', format(' %d ', balance) .. free .. ' 0 0 0 0'
  end
  local hold = 'v1\t' .. text .. '\t' .. free .. since .. ARGV[a + 1]
  if amount > 0 and least then hold = hold .. spend(amount) end
  local opened = try('HSETNX', open, ARGV[a], hold)
  if opened == 0 then return '6', NOTHING end -- duplicate
  if opened ~= 1 then
    if not find(opened.err, 'WRONGTYPE', 1, true) then error(opened) end
    write_tokens(wallet, funds, at)
    return '9', NOTHING -- shard damaged
  end
  local balance_text = format('%d', balance - amount)
  if amount > 0 and least then
    call('HSET', wallet, 'balance', balance_text, unpack(writes, 1, 2 * n))
  elseif amount > 0 then
    write_tokens(wallet, funds, at, 'balance', balance_text)
  elseif free == '1' then
    write_tokens(wallet, funds, at, free_field, format('%d', used + 1))
    free = format('%d', quota - used)
  else
    write_tokens(wallet, funds, at)
  end
  if least and least < balance then balance_text = format('%d', least - amount) end
  return '0', ' ' .. balance_text .. ' ' .. free .. ' ' .. text .. ' 0 0 0'
end

-- Decides any call whose keys are all active, and whose wallet has been read. Where that is damaged, only the root has a bucket that can
-- be read. @return code, rest of the reply after the limit
local function decide(root, wallet, state, funds, at)
  local found, used = funds[at], 0
  if not found and not funds.err then return '4', '0' .. NOTHING end -- wallet not loaded
  local root_ts = tonumber(state[4])
  local root_tokens = tokens_in(limit_number, tonumber(state[3]), root_ts)
  local balance = found and integer(found)
  if at == 2 and funds[1] then used = integer(funds[1]) end
  local tokens, least
  if balance and used then tokens, least = look_at_levels(funds, at, root_tokens) end
  local is_damaged = not tokens
  if is_damaged then tokens = root_tokens end
  if tokens < 60000 then
    return '1', wait_for_tokens(root, root_tokens, root_ts, is_damaged and 0 or n, wallet, funds, at) .. NOTHING
  end
  local code, rest = '8', NOTHING
  if not is_damaged then code, rest = charge(wallet, KEYS[k + 2], funds, at, balance, used, least) end
  if code == '6' then return code, '0' .. rest end
  local root_text = format('%d', root_tokens - 60000)
  put_tokens(root, root_text)
  return code, format('%d', tokens - 60000) .. rest
end

-- Admits a usual call as `decide` does, in two thirds of the time: one that costs something, for which each level has a token, and each
-- budget the money in the period that it counts in. @return rest of the reply after the limit; nil: it is another call, and nothing was
-- changed
local function admit_usual(root, wallet, state, funds, at)
  local levels, its_terms, its_writes, time = n, terms, writes, now
  local tokens, ts, balance = tonumber(state[3]), tonumber(state[4]), funds[at] and integer(funds[at])
  if price ~= price_text then price_text, price_number = price, tonumber(price) end
  local amount = price_number
  if not (tokens and ts and balance and balance >= amount and amount > 0) then return nil end
  if time > ts then tokens = tokens + (time - ts) * limit_number end
  if tokens > limit_number * 60000 then tokens = limit_number * 60000 end
  if not (tokens >= 60000) then return nil end
  local fewest, least = tokens, balance
  for i = 1, levels do
    local its, text = its_terms[i], funds[at + i]
    if not text or #text ~= 32 then return nil end
    local its_tokens, its_ts, used, period = unpack_state(CHILD, text)
    if time > its_ts then its_tokens = its_tokens + (time - its_ts) * its.limit end
    if its_tokens > its.capacity then its_tokens = its.capacity end
    if not (its_tokens >= 60000) then return nil end
    if its_tokens < fewest then fewest = its_tokens end
    local budget = its.budget
    if period ~= its.present or not (used >= 0 and used + amount <= budget and used % 1 == 0) then return nil end
    if budget - used < least then least = budget - used end
    its_writes[2 * i] = pack(CHILD, its_tokens - 60000, time, used + amount, period)
  end
  -- Each text that a script makes takes 5 instructions a byte. So the hold is made in one step.
  local hold
  if levels == 1 then
    hold = 'v1\t' .. price .. '\t0' .. since .. ARGV[a + 1] .. '\tbudgets=' .. ids[1] .. its_terms[1].present_text
  elseif levels == 2 then
    hold = 'v1\t' .. price .. '\t0' .. since .. ARGV[a + 1] .. '\tbudgets=' .. ids[1] .. its_terms[1].present_text
      .. ',' .. ids[2] .. its_terms[2].present_text
  else
    hold = 'v1\t' .. price .. '\t0' .. since .. ARGV[a + 1] .. '\tbudgets=' .. ids[1] .. its_terms[1].present_text
      .. ',' .. ids[2] .. its_terms[2].present_text .. ',' .. ids[3] .. its_terms[3].present_text
  end
  if try('HSETNX', KEYS[k + 2], ARGV[a], hold) ~= 1 then return nil end
  local root_text, balance_text = format('%d', tokens - 60000), format('%d', balance - amount)
  call('HSET', wallet, 'balance', balance_text, unpack(its_writes, 1, 2 * levels))
  put_tokens(root, root_text)
  return (fewest == tokens and root_text or format('%d', fewest - 60000)) .. ' '
    .. (least == balance and balance_text or format('%d', least - amount)) .. ' 0 ' .. price .. ' 0 0 0'
end

local chain_commands = {}

chain_commands[byte('D')] = function()
  local root, wallet = KEYS[k], KEYS[k + 1]
  if ARGV[a + 2] ~= last_chain then read_chain(ARGV[a + 2]) end
  local code, state = look_at(root)
  local rest
  if code == '0' then
    local at, funds = 1, nil
    if free_field then
      at, funds = 2, try('HMGET', wallet, free_field, 'balance', unpack(ids, 1, n))
    else
      funds = try('HMGET', wallet, 'balance', unpack(ids, 1, n))
    end
    if funds.err and not find(funds.err, 'WRONGTYPE', 1, true) then error(funds) end
    if at == 1 or funds[1] == quota_text then rest = admit_usual(root, wallet, state, funds, at) end
    if not rest then code, rest = decide(root, wallet, state, funds, at) end
  end
  r = r + 1
  reply[r] = code .. ' ' .. (state and terms[n].limit_text or '0') .. ' ' .. (rest or '0' .. NOTHING)
  k = k + 3
  a = a + 4
end

-- Takes a token of the bucket of the key itself. @return code, tokens
local function take_own(wallet)
  local id = ids[n]
  local funds = try('HMGET', wallet, 'balance', id)
  if funds.err and not find(funds.err, 'WRONGTYPE', 1, true) then error(funds) end
  if funds.err then return '8', 0 end -- wallet damaged
  if not funds[1] then return '4', 0 end -- wallet not loaded
  local tokens, ts, its_spent, period = 0, 0, 0, 0
  if funds[2] then tokens, ts, its_spent, period = child_state(funds[2]) end
  if not tokens then return '8', 0 end
  tokens = tokens_in(terms[n].limit, tokens, ts)
  local code = '1'
  if tokens >= 60000 then code, tokens = '0', tokens - 60000 end
  if code == '0' or ts > now then call('HSET', wallet, id, pack(CHILD, tokens, now, its_spent, period)) end
  return code, tokens
end

-- Takes a token of a bucket that is made on demand. @return code, tokens
local function take_beside(bucket, limit)
  local state = try('HMGET', bucket, 'tokens', 'ts')
  if state.err then
    rare = rare or rare_commands()
    rare.barred(bucket, state)
  end
  local ts = tonumber(state[2])
  local tokens, code = tokens_in(tonumber(limit), tonumber(state[1]), ts), '1'
  if tokens >= 60000 then code, tokens = '0', tokens - 60000 end
  if code == '0' or ts > now then put_tokens(bucket, format('%d', tokens), true) end
  return code, tokens
end

chain_commands[byte('E')] = function()
  local its_limit = ARGV[a + 1]
  if ARGV[a] ~= last_chain then read_chain(ARGV[a]) end
  local code, state = look_at(KEYS[k])
  local limit, tokens = '0', 0
  if state then
    limit = terms[n].limit_text
    if its_limit ~= '' and its_limit ~= '0' then limit = its_limit end
  end
  if code == '0' then
    if its_limit == '' then
      code, tokens = take_own(KEYS[k + 1])
    else
      code, tokens = take_beside(KEYS[k + 1], limit)
    end
  end
  r = r + 1
  reply[r] = code .. ' ' .. limit .. format(' %d', tokens)
  k = k + 2
  a = a + 2
end

-- Refuses a call of a child key because of the claim of another one (claims.lua). @param code  why
function chain_commands.refuse(code)
  if ARGV[a + 2] ~= last_chain then read_chain(ARGV[a + 2]) end
  local key_code, state = look_at(KEYS[k])
  local tokens = 0
  if key_code == '0' then key_code, tokens = take_own(KEYS[k + 1]) end
  if key_code == '0' then key_code = code end
  r = r + 1
  reply[r] = key_code .. ' ' .. (state and terms[n].limit_text or '0') .. format(' %d', tokens) .. NOTHING
  k = k + 3
  a = a + 4
end

return chain_commands
