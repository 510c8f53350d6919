-- The script that wrk runs for drive.mjs: it sends requests with many API keys in turn, and writes the result as JSON.
-- https://github.com/wg/wrk/blob/master/SCRIPTING says which of these functions wrk calls when.

local method = os.getenv("BENCH_METHOD")
local auth_file = os.getenv("BENCH_AUTH")
local expected = tonumber(os.getenv("BENCH_EXPECT_STATUS"))
local tolerable = tonumber(os.getenv("BENCH_TOLERATE_STATUS"))
local body_bytes = tonumber(os.getenv("BENCH_BODY_BYTES"))

-- Up to this length a request is prepared whole for each key. A larger body is joined to its head when it is sent, because whole
-- requests for all keys would not fit into memory.
local prepared_body_bytes = 4096

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

local heads, bodies = {}, ""
local current = 0

-- wrk.format is not used here, because it drops the Content-Length if it is not given the body.
local function head_of(authorization)
  local lines = { method .. " " .. wrk.path .. " HTTP/1.1", "Host: " .. wrk.headers["Host"] }
  if authorization then lines[#lines + 1] = "Authorization: " .. authorization end
  if body_bytes > 0 then
    lines[#lines + 1] = "Content-Type: application/octet-stream"
    lines[#lines + 1] = "Content-Length: " .. body_bytes
  end
  return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

function init()
  unexpected, tolerated = 0, 0
  local body = string.rep("x", body_bytes)
  local function prepare(authorization)
    local head = head_of(authorization)
    if body_bytes <= prepared_body_bytes then head = head .. body end
    heads[#heads + 1] = head
  end
  if auth_file == "" then
    prepare(nil)
  else
    for line in io.lines(auth_file) do prepare(line) end
  end
  if body_bytes > prepared_body_bytes then bodies = body end
  current = tonumber(os.getenv("BENCH_FIRST_AUTH")) % #heads
end

function request()
  current = current + 1
  if current > #heads then current = 1 end
  if bodies == "" then return heads[current] end
  return heads[current] .. bodies
end

-- Defined only if a certain status is expected: with this function wrk parses every head into a table, which costs time. Without
-- it, wrk itself counts statuses from 400 up as errors.
if expected then
  function response(status)
    if status == expected then return end
    if status == tolerable then tolerated = tolerated + 1 else unexpected = unexpected + 1 end
  end
end

function done(summary, latency)
  local wrong, tolerated = summary.errors.status, 0
  if expected then
    wrong = 0
    for _, thread in ipairs(threads) do
      wrong = wrong + thread:get("unexpected")
      tolerated = tolerated + thread:get("tolerated")
    end
  end
  local out = assert(io.open(os.getenv("BENCH_RESULT"), "w"))
  out:write(string.format(
    '{"seconds":%.6f,"calls":%d,"bytes":%d,"tolerated":%d,' ..
    '"errors":{"connect":%d,"socket":%d,"timeout":%d,"status":%d},' ..
    '"latency":{"p50":%d,"p90":%d,"p99":%d,"p999":%d,"max":%d}}',
    summary.duration / 1e6, summary.requests, summary.bytes, tolerated,
    summary.errors.connect, summary.errors.read + summary.errors.write, summary.errors.timeout, wrong,
    latency:percentile(50), latency:percentile(90), latency:percentile(99), latency:percentile(99.9), latency.max))
  out:close()
end
