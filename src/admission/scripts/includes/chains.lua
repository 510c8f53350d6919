--[[
  chains.lua: the commands of child keys, 'D' and 'E' of batch.lua. A child's chain is the keys from its root to itself; the root's
  hash has the state of all of them. In the tables below, level 0 is the root, and the last level the key itself.

  Included where batch.lua makes what most batches do not need, so it sees that file's locals. Damaged data never raise an error here:
  all that could fail is read or tried before the first write.
]]
local floor, gmatch = math.floor, string.gmatch
--- @include "../../../ledger/scripts/includes/integer.lua"

-- Terms that were parsed, by text. Keys of one tree mostly have the same, and calls of one batch mostly the same chain.
local known_terms, known_chains, present_periods = {}, {}, {}

-- The names of what a chain's admission reads. `state`: of the root's hash, for level i terms at 3i + 2, tokens at 3i + 3 and time
-- at 3i + 4 (the root's limit and status come first). `funds`: of the wallet, balance, then spent at 2i and period at 2i + 1.
local function read_chain(text)
  local chain = known_chains[text]
  if chain then return chain end
  local n, ids, state, funds = 0, {}, { 'limit', 'status', 'tokens', 'ts' }, { 'balance' }
  for id in gmatch(text, '[^ ]+') do
    n = n + 1
    ids[n] = id
    state[3 * n + 2], state[3 * n + 3], state[3 * n + 4] = 'terms:' .. id, 'tokens:' .. id, 'ts:' .. id
    funds[2 * n], funds[2 * n + 1] = 'spent:' .. id, 'period:' .. id
  end
  chain = { n = n, ids = ids, state = state, funds = funds }
  known_chains[text] = chain
  return chain
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
  local terms = known_terms[text]
  if terms then return terms end
  local limit, status, expires, amount, kind, number =
    match(text, '^([1-9]%d*) ([a-z_]+) (%d+) (%S+) (%S+) (%d+)$')
  if not limit or #limit > 9 or not integer(expires) or #number > 9 then return nil end
  local budget = amount ~= '-' and integer(amount) or nil
  if amount ~= '-' and (not budget or budget < 0 or not present_of(kind)) then return nil end
  terms = {
    limit = tonumber(limit), limit_text = limit, status = status, expires = tonumber(expires),
    budget = budget, kind = kind, first_period = number * 1000000,
  }
  known_terms[text] = terms
  return terms
end

-- Reads the state of all keys of a chain. @return code, terms by level (1 to n), state as HMGET replied it
-- After any code but 3 (key not loaded) there are the terms of the key itself.
local function look_at(bucket, chain)
  local state, code, terms = try('HMGET', bucket, unpack(chain.state)), '0', {}
  local limit = state[1]
  if not limit or state[2] ~= 'active' or #limit > 9 or not match(limit, '^[1-9]%d*$') then
    rare = rare or rare_commands()
    code = rare.barred(bucket, state)
    if code == '3' then return code end
  end
  for i = 1, chain.n do
    local text = state[3 * i + 2]
    local its = text and parse_terms(text)
    if not its then
      if text then call('HDEL', bucket, chain.state[3 * i + 2]) end
      return '3'
    end
    terms[i] = its
    if code == '0' and its.status ~= 'active' then
      code = its.status == 'revoked' and '2' or '10'
    elseif code == '0' and its.expires > 0 and now >= its.expires then
      code = '12'
    end
  end
  return code, terms, state
end

-- As `refill` of batch.lua, without a write.
local function tokens_in(limit, tokens, ts)
  local capacity = limit * 60000
  if not tokens or not ts then return capacity end
  if now > ts then tokens = tokens + (now - ts) * limit end
  return tokens >= 0 and tokens <= capacity and tokens or capacity
end

-- Looks into the buckets of all levels. @return code ('0', or '1' for rate limited), tokens to reply, what to write if one token of
-- each is taken
-- The tokens are the fewest of any level. If a bucket is empty, they are as many as the key's own bucket would have if it had to wait
-- as long: whoever waits for it has waited for all.
local function look_into_buckets(bucket, chain, terms, state)
  local own, fewest, longest, writes, behind = terms[chain.n].limit, nil, 0, {}, {}
  for i = 0, chain.n do
    local limit, ts = i == 0 and tonumber(state[1]) or terms[i].limit, tonumber(state[3 * i + 4])
    local tokens = tokens_in(limit, tonumber(state[3 * i + 3]), ts)
    if not fewest or tokens < fewest then fewest = tokens end
    if tokens < 60000 then
      longest = math.max(longest, (60000 - tokens) / limit)
      -- Redis's clock was set back: the bucket keeps its tokens, and is refilled by the new time.
      if ts and ts > now then
        local w = #behind
        behind[w + 1], behind[w + 2] = chain.state[3 * i + 3], format('%d', tokens)
        behind[w + 3], behind[w + 4] = chain.state[3 * i + 4], now_text
      end
    end
    local w = 4 * i
    writes[w + 1], writes[w + 2] = chain.state[3 * i + 3], format('%d', tokens - 60000)
    writes[w + 3], writes[w + 4] = chain.state[3 * i + 4], now_text
  end
  if longest == 0 then return '0', fewest, writes end
  if #behind > 0 then call('HSET', bucket, unpack(behind)) end
  return '1', floor(60000 - longest * own)
end

-- What the budgets of a chain leave. @return what is left in the one with the least (nil: there is no budget), spent and period of
-- each level that has one; nil and 'damaged' if a number of the wallet is none
-- A period that is later than the clock says stays: a clock that was set back opens no older one.
local function look_at_budgets(chain, terms, funds)
  local least, spent, periods
  for i = 1, chain.n do
    local its = terms[i]
    if its.budget then
      local used, period = integer(funds[2 * i + 1] or '0'), integer(funds[2 * i + 2] or '0')
      if not used or used < 0 or not period then return nil, 'damaged' end
      local present = its.first_period + present_of(its.kind)
      if period < present then used, period = 0, present end
      spent, periods = spent or {}, periods or {}
      spent[i], periods[i] = used, period
      local left = math.max(0, its.budget - used)
      if not least or left < least then least = left end
    end
  end
  return least, spent, periods
end

-- The end of the reply to a call that the budgets do not cover. Of several that do not, it names the one that starts again last, so
-- that waiting for it is enough.
local function exceeded(chain, terms, spent, periods, least_amount)
  local level, left, last
  for i = 1, chain.n do
    local rest = spent[i] and math.max(0, terms[i].budget - spent[i])
    if rest and rest < least_amount then
      local again = starts_again(terms[i].kind, periods[i])
      if not last or (last > 0 and (again == 0 or again > last)) then level, left, last = i, rest, again end
    end
  end
  return format(' %d %d %d', level, left, last)
end

local NO_BUDGET = ' 0 0 0'

-- Takes a call's money from the wallet and counts it in the budgets, and opens its hold. The hold comes first: its shard may be
-- damaged, while the wallet has been read, so that nothing written to it can fail.
-- @return code, balance, free, amount, end of the reply
local function charge(wallet, open, chain, terms)
  local funds = try('HMGET', wallet, free_field or 'balance', unpack(chain.funds))
  if funds.err then
    if not string.find(funds.err, 'WRONGTYPE', 1, true) then error(funds) end
    return '8', 0, '0', 0, NO_BUDGET -- wallet damaged
  end
  if not funds[2] then return '4', 0, '0', 0, NO_BUDGET end -- wallet not loaded
  local balance, used = integer(funds[2]), 0
  if free_field and funds[1] then used = integer(funds[1]) end
  local left, spent, periods = look_at_budgets(chain, terms, funds)
  if not balance or not used or spent == 'damaged' then return '8', 0, '0', 0, NO_BUDGET end
  local amount, free = tonumber(price), '0'
  if free_field and used < quota then amount, free = 0, '1' end
  if left and amount > left then
    local least_amount = tonumber(ARGV[a + 3])
    if left < least_amount then
      return '11', math.min(balance, left), free, 0, exceeded(chain, terms, spent, periods, least_amount)
    end
    amount = left
  end
  if amount > 0 and amount > balance then return '5', balance, free, 0, NO_BUDGET end

  local taken, writes, w = {}, {}, 0
  if amount > 0 and spent then
    for i = 1, chain.n do
      if spent[i] then
        local period = format('%d', periods[i])
        taken[#taken + 1] = chain.ids[i] .. '.' .. period
        writes[w + 1], writes[w + 2] = chain.funds[2 * i], format('%d', spent[i] + amount)
        w = w + 2
        if period ~= funds[2 * i + 2] then
          writes[w + 1], writes[w + 2] = chain.funds[2 * i + 1], period
          w = w + 2
        end
      end
    end
  end
  local text = format('v1\t%d\t', amount) .. free .. since .. ARGV[a + 1]
  if w > 0 then text = text .. '\tbudgets=' .. table.concat(taken, ',') end
  local opened = try('HSETNX', open, ARGV[a], text)
  if opened == 0 then return '6', 0, '0', 0, NO_BUDGET end -- duplicate
  if opened ~= 1 then
    if not string.find(opened.err, 'WRONGTYPE', 1, true) then error(opened) end
    return '9', 0, '0', 0, NO_BUDGET -- shard damaged
  end
  if amount > 0 then
    call('HSET', wallet, 'balance', format('%d', balance - amount), unpack(writes))
  elseif free == '1' then
    call('HSET', wallet, free_field, format('%d', used + 1))
  end
  balance = balance - amount
  return '0', left and math.min(balance, left - amount) or balance, free, amount, NO_BUDGET
end

local chain_commands = {}

chain_commands[byte('D')] = function()
  local bucket, chain = KEYS[k], read_chain(ARGV[a + 2])
  local code, terms, state = look_at(bucket, chain)
  local limit, tokens, writes = terms and terms[chain.n].limit_text or '0', 0, nil
  local balance, free, amount, budget = 0, '0', 0, NO_BUDGET
  if code == '0' then code, tokens, writes = look_into_buckets(bucket, chain, terms, state) end
  if code == '0' then
    code, balance, free, amount, budget = charge(KEYS[k + 1], KEYS[k + 2], chain, terms)
    if code ~= '4' and code ~= '6' then
      tokens = tokens - 60000
      call('HSET', bucket, unpack(writes))
    end
  end
  r = r + 1
  reply[r] = code .. ' ' .. limit .. format(' %d %d ', tokens, balance) .. free .. format(' %d', amount) .. budget
  k = k + 3
  a = a + 4
end

chain_commands[byte('E')] = function()
  local bucket, chain, its_limit = KEYS[k], read_chain(ARGV[a]), ARGV[a + 1]
  local code, terms, state = look_at(bucket, chain)
  local limit, tokens = '0', 0
  if terms then
    local own, n, beside = terms[chain.n], chain.n, KEYS[k + 1]
    local fields = { chain.state[3 * n + 3], chain.state[3 * n + 4] }
    limit = own.limit_text
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
