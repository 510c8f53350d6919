--[[
  periods.lua: in which period of a budget a call counts, and when the next one begins. As src/keys/budget-period.ts; a test compares them.

  Included in chains.lua, whose `floor` and batch.lua's `now` it uses.
]]
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

-- Periods of now, by kind: calls of one batch have them in common.
local present_periods = {}

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
