--[[
  chains.lua: the commands of child keys, 'D' and 'E' of batch.lua. A child's chain is the keys from its root to itself; the root's
  hash has the state of all of them. In the tables below, level 0 is the root, and the last level the key itself.

  Included where batch.lua makes what most batches do not need, so it sees that file's locals. Damaged data never raise an error here:
  all that could fail is read or tried before the first write.
]]
local floor, min, max, find, sub = math.floor, math.min, math.max, string.find, string.sub
--- @include "../../../ledger/scripts/includes/integer.lua"

-- What calls of one batch have in common, by text: terms that were parsed, and periods of now.
local known_terms, present_periods = {}, {}

-- The chain of the command: its number of levels below the root, and by level the ids, terms, and what the budget has spent in which
-- period (text; false: the level has no budget). All these tables are used again for each command: making them anew for each took a
-- third of its time.
local n, last_chain = 0, nil
local ids, terms, spent, periods = {}, {}, {}, {}
-- The names of what is read. Of the root's hash: terms of level i at 3i + 2, tokens at 3i + 3, time at 3i + 4. Of the wallet: free calls
-- used (or anything, where none are asked for), balance, then spent at 2i + 1, period at 2i + 2.
local state_names, fund_names = { 'limit', 'status', 'tokens', 'ts' }, { '', 'balance' }
-- Fields and values to write.
local writes = {}

local function read_chain(text)
  if text == last_chain then return end
  local from, to = 1, nil
  n, last_chain = 0, text
  repeat
    to = find(text, ' ', from, true)
    local id = sub(text, from, to and to - 1)
    n = n + 1
    ids[n] = id
    state_names[3 * n + 2], state_names[3 * n + 3], state_names[3 * n + 4] = 'terms:' .. id, 'tokens:' .. id, 'ts:' .. id
    fund_names[2 * n + 1], fund_names[2 * n + 2] = 'spent:' .. id, 'period:' .. id
    from = to and to + 1
  until not to
end

-- 1970-01-01 is day 0, a Thursday. A year begins in March here, so that the leap day is its last.
local function month_of(day)
  local z = day + 719468
  local era = floor(z / 146097)
  local of_era = z - era * 146097
  local year = floor((of_era - floor(of_era / 1460) + floor(of_era / 36524) - floor(of_era / 146096)) / 365)
  local of_year = of_era - (365 * year + floor(year / 4) - floor(year / 100))
  return (year + era * 400 - 1970) * 12 + floor((5 * of_year + 2) / 153) + 2
end

local function first_day_of(month)
  local since_march = month + 1970 * 12 - 2
  local year, of_year = floor(since_march / 12), since_march % 12
  local era = floor(year / 400)
  local of_era = year - era * 400
  return era * 146097 + of_era * 365 + floor(of_era / 4) - floor(of_era / 100) + floor((153 * of_year + 2) / 5) - 719468
end

-- The number of the present period, without what the number of the budget adds to it.
local function present_of(kind)
  local n, day = present_periods[kind], floor(now / 86400000)
  if n then return n end
  if kind == 'total' then n = 0
  elseif kind == 'day' then n = day
  elseif kind == 'week' then n = floor((day + 3) / 7)
  elseif kind == 'month' then n = month_of(day) end
  present_periods[kind] = n
  return n
end

-- When the period after this one begins (ms); 0: never
local function starts_again(kind, period)
  local following = period % 1000000 + 1
  if kind == 'total' then return 0 end
  if kind == 'month' then return first_day_of(following) * 86400000 end
  return (kind == 'week' and 7 * following - 3 or following) * 86400000
end

-- What the key's `terms` say. nil: damaged
local function parse_terms(text)
  local limit, status, expires, amount, kind, number =
    match(text, '^([1-9]%d*) ([a-z_]+) (%d+) (%S+) (%S+) (%d+)$')
  if not limit or #limit > 9 or not integer(expires) or #number > 9 then return nil end
  local budget = amount ~= '-' and integer(amount) or nil
  if amount ~= '-' and (not budget or budget < 0 or not present_of(kind)) then return nil end
  local its = {
    limit = tonumber(limit), limit_text = limit, status = status, expires = tonumber(expires),
    budget = budget, kind = kind, first_period = number * 1000000,
  }
  known_terms[text] = its
  return its
end

-- The period of now of a key's budget, as a number and as text.
local function present_period(its)
  if not its.present then
    its.present = its.first_period + present_of(its.kind)
    its.present_text = format('%d', its.present)
  end
  return its.present, its.present_text
end

-- Reads the state of all keys of the chain, and their `terms`. @return code, state as HMGET replied it
-- After any code but 3 (key not loaded) the terms of all levels are there.
local function look_at(bucket)
  local state, code = try('HMGET', bucket, unpack(state_names, 1, 3 * n + 4)), '0'
  local limit = state[1]
  if not limit or state[2] ~= 'active' or (limit ~= limit_text and (#limit > 9 or not match(limit, '^[1-9]%d*$'))) then
    rare = rare or rare_commands()
    code = rare.barred(bucket, state)
    if code == '3' then return code end
  end
  for i = 1, n do
    local text = state[3 * i + 2]
    local its = text and (known_terms[text] or parse_terms(text))
    if not its then
      if text then call('HDEL', bucket, state_names[3 * i + 2]) end
      return '3'
    end
    terms[i] = its
    if code == '0' and its.status ~= 'active' then
      code = its.status == 'revoked' and '2' or '10'
    elseif code == '0' and its.expires > 0 and now >= its.expires then
      code = '12'
    end
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

-- Called when a bucket is empty. Where Redis's clock was set back, the bucket keeps its tokens, and is refilled by the new time.
-- @return how many tokens the key's own bucket would have if it had to wait as long as the one that has to wait longest: whoever waits
-- for it has waited for all
local function wait_for_tokens(bucket, state, root_limit)
  local longest = 0
  for i = 0, n do
    local limit, ts = i == 0 and root_limit or terms[i].limit, tonumber(state[3 * i + 4])
    local tokens = tokens_in(limit, tonumber(state[3 * i + 3]), ts)
    if tokens < 60000 then
      longest = max(longest, (60000 - tokens) / limit)
      if ts > now then call('HSET', bucket, state_names[3 * i + 3], format('%d', tokens), state_names[3 * i + 4], now_text) end
    end
  end
  return floor(60000 - longest * terms[n].limit)
end

-- Looks into the buckets of all levels. @return code ('0', or '1' for rate limited), tokens to reply: the fewest of any level
-- `writes` then has what to write if one token of each is taken.
local function look_into_buckets(bucket, state)
  local root_limit, fewest = tonumber(state[1]), nil
  for i = 0, n do
    local limit = i == 0 and root_limit or terms[i].limit
    local tokens = tokens_in(limit, tonumber(state[3 * i + 3]), tonumber(state[3 * i + 4]))
    if tokens < 60000 then return '1', wait_for_tokens(bucket, state, root_limit) end
    if not fewest or tokens < fewest then fewest = tokens end
    local w = 4 * i
    writes[w + 1], writes[w + 2] = state_names[3 * i + 3], format('%d', tokens - 60000)
    writes[w + 3], writes[w + 4] = state_names[3 * i + 4], now_text
  end
  return '0', fewest
end

-- Reads `spent` and `periods` of the budgets. @return what is left in the one with the least (false: there is no budget); nil if a
-- number of the wallet is none
-- A period that is later than the clock says stays: a clock that was set back opens no older one.
local function look_at_budgets(funds)
  local least = false
  for i = 1, n do
    local its = terms[i]
    spent[i] = false
    if its.budget then
      local used, period = funds[2 * i + 1], funds[2 * i + 2]
      local present, present_text = present_period(its)
      used = used and integer(used) or (not used and 0)
      if not used then return nil end
      if period ~= present_text then
        local known = period and integer(period) or (not period and 0)
        if not known then return nil end
        if known < present then used, period = 0, present_text elseif not period then period = present_text end
      end
      spent[i], periods[i] = used, period
      local left = its.budget - used
      -- A negative number is a drift, which no call changes: it counts as 0, and goes on from where it is.
      if used < 0 then left = its.budget elseif left < 0 then left = 0 end
      if not least or left < least then least = left end
    end
  end
  return least
end

-- The end of the reply to a call that the budgets do not cover. Of several that do not, it names the one that starts again last, so
-- that waiting for it is enough.
local function exceeded(least_amount)
  local level, left, last
  for i = 1, n do
    local rest = spent[i] and max(0, terms[i].budget - max(0, spent[i]))
    if rest and rest < least_amount then
      local again = starts_again(terms[i].kind, tonumber(periods[i]))
      if not last or (last > 0 and (again == 0 or again > last)) then level, left, last = i, rest, again end
    end
  end
  return format(' %d %d %d', level, left, last)
end

local NO_BUDGET = ' 0 0 0'

-- Takes a call's money from the wallet and counts it in the budgets, and opens its hold. The hold comes first: its shard may be
-- damaged, while the wallet has been read, so that nothing written to it can fail.
-- @return code, balance, free, amount, end of the reply
local function charge(wallet, open)
  fund_names[1] = free_field or 'balance'
  local funds = try('HMGET', wallet, unpack(fund_names, 1, 2 * n + 2))
  if funds.err then
    if not find(funds.err, 'WRONGTYPE', 1, true) then error(funds) end
    return '8', 0, '0', 0, NO_BUDGET -- wallet damaged
  end
  if not funds[2] then return '4', 0, '0', 0, NO_BUDGET end -- wallet not loaded
  local balance, used = integer(funds[2]), 0
  if free_field and funds[1] then used = integer(funds[1]) end
  local left = look_at_budgets(funds)
  if not balance or not used or left == nil then return '8', 0, '0', 0, NO_BUDGET end
  local amount, text, free = tonumber(price), price, '0'
  if free_field and used < quota then amount, text, free = 0, '0', '1' end
  if left and amount > left then
    local least_amount = tonumber(ARGV[a + 3])
    if left < least_amount then return '11', min(balance, left), free, 0, exceeded(least_amount) end
    amount, text = left, format('%d', left)
  end
  if amount > 0 and amount > balance then return '5', balance, free, 0, NO_BUDGET end

  local hold, w = 'v1\t' .. text .. '\t' .. free .. since .. ARGV[a + 1], 0
  local changes = {}
  if amount > 0 and left then
    local before = '\tbudgets='
    for i = 1, n do
      if spent[i] then
        hold, before = hold .. before .. ids[i] .. '.' .. periods[i], ','
        changes[w + 1], changes[w + 2] = fund_names[2 * i + 1], format('%d', spent[i] + amount)
        w = w + 2
        if periods[i] ~= funds[2 * i + 2] then
          changes[w + 1], changes[w + 2] = fund_names[2 * i + 2], periods[i]
          w = w + 2
        end
      end
    end
  end
  local opened = try('HSETNX', open, ARGV[a], hold)
  if opened == 0 then return '6', 0, '0', 0, NO_BUDGET end -- duplicate
  if opened ~= 1 then
    if not find(opened.err, 'WRONGTYPE', 1, true) then error(opened) end
    return '9', 0, '0', 0, NO_BUDGET -- shard damaged
  end
  if amount > 0 then
    call('HSET', wallet, 'balance', format('%d', balance - amount), unpack(changes, 1, w))
  elseif free == '1' then
    call('HSET', wallet, free_field, format('%d', used + 1))
    free = format('%d', quota - used)
  end
  balance = balance - amount
  return '0', left and min(balance, left - amount) or balance, free, amount, NO_BUDGET
end

local chain_commands = {}

chain_commands[byte('D')] = function()
  local bucket = KEYS[k]
  read_chain(ARGV[a + 2])
  local code, state = look_at(bucket)
  local limit, tokens = state and terms[n].limit_text or '0', 0
  local balance, free, amount, budget = 0, '0', 0, NO_BUDGET
  if code == '0' then code, tokens = look_into_buckets(bucket, state) end
  if code == '0' then
    code, balance, free, amount, budget = charge(KEYS[k + 1], KEYS[k + 2])
    if code ~= '4' and code ~= '6' then
      tokens = tokens - 60000
      call('HSET', bucket, unpack(writes, 1, 4 * n + 4))
    end
  end
  r = r + 1
  reply[r] = code .. ' ' .. limit .. format(' %d %d ', tokens, balance) .. free .. format(' %d', amount) .. budget
  k = k + 3
  a = a + 4
end

chain_commands[byte('E')] = function()
  local bucket, its_limit = KEYS[k], ARGV[a + 1]
  read_chain(ARGV[a])
  local code, state = look_at(bucket)
  local limit, tokens = '0', 0
  if state then
    local beside = KEYS[k + 1]
    local fields = { state_names[3 * n + 3], state_names[3 * n + 4] }
    limit = terms[n].limit_text
    if its_limit ~= '' then
      fields = { 'tokens', 'ts' }
      if its_limit ~= '0' then limit = its_limit end
      state = try('HMGET', beside, 'tokens', 'ts')
      if state.err then
        rare = rare or rare_commands()
        rare.barred(beside, state)
      end
    else
      beside, state = bucket, { state[3 * n + 3], state[3 * n + 4] }
    end
    if code == '0' then
      local ts = tonumber(state[2])
      tokens = tokens_in(tonumber(limit), tonumber(state[1]), ts)
      if tokens >= 60000 then tokens = tokens - 60000 else code = '1' end
      if code == '0' or ts > now then
        call('HSET', beside, fields[1], format('%d', tokens), fields[2], now_text)
        if its_limit ~= '' then call('PEXPIRE', beside, '61000') end
      end
    end
  end
  r = r + 1
  reply[r] = code .. ' ' .. limit .. format(' %d', tokens)
  k = k + 2
  a = a + 2
end

return chain_commands
