-- The metering of the peer 'nginx-lua': access_by_lua runs it for each call. It is written to be fast: keys are in a table of the
-- worker, digests are compared as interned strings, one EVALSHA goes over a pooled connection, and later phases do no work.

local ffi = require "ffi"
local redis = require "nginx.redis"

-- nginx is linked with libcrypto, so its SHA256 can be called directly. resty.sha256, which Debian does not package, needs three
-- calls for the same work.
ffi.cdef [[ unsigned char *SHA256(const unsigned char *data, size_t length, unsigned char *digest); ]]
local digest = ffi.new("unsigned char[32]")

local ngx, sub, byte, format, floor = ngx, string.sub, string.byte, string.format, math.floor

local M = {}
local keys = {}
local settings

-- A line of the file has, separated by tabs: key id, digest of the secret (hexadecimal), account.
local function read_keys(file)
  for line in io.lines(file) do
    local id, hex, account = line:match("^(%S+)\t(%x+)\t(%S+)$")
    local raw = hex:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end)
    keys[id] = { digest = raw, account = account, bucket = "key:" .. id, wallet = "wallet:" .. account }
  end
end

-- { keys_file, redis_port, script_sha, service, price, free_calls }
function M.init(options)
  settings = options
  settings.free_field = "free:" .. options.service
  read_keys(options.keys_file)
end

local function refuse(status, code, message)
  ngx.status = status
  ngx.header["Content-Type"] = "application/json; charset=utf-8"
  ngx.print('{"error":"', code, '","message":"', message, '","status":', status, "}")
  return ngx.exit(status)
end

-- Bearer acf_<22>:sk_<49>
local function authenticate()
  local header = ngx.var.http_authorization
  if not header or #header ~= 86 or sub(header, 1, 7) ~= "Bearer " or byte(header, 34) ~= 58 then return nil end
  local id = sub(header, 8, 33)
  local key = keys[id]
  if not key then return nil end
  local secret = sub(header, 35)
  ffi.C.SHA256(secret, #secret, digest)
  if ffi.string(digest, 32) ~= key.digest then return nil end
  return key, id
end

local function charge(key, id)
  local connection = redis:new()
  connection:set_timeout(500)
  local ok, connect_error = connection:connect("127.0.0.1", settings.redis_port)
  if not ok then return nil, connect_error end
  local reply, err = connection:evalsha(settings.script_sha, 3, key.bucket, key.wallet, "usage",
    settings.price, settings.free_calls, settings.free_field,
    ngx.var.request_id, id, key.account, settings.service, ngx.req.get_method(), ngx.var.uri)
  if not reply then return nil, err end
  connection:set_keepalive(60000, 1024)
  return reply
end

function M.access()
  local key, id = authenticate()
  if not key then return refuse(401, "unauthorized", "Missing or invalid API key.") end
  local reply, err = charge(key, id)
  if not reply then
    ngx.log(ngx.ERR, "redis: ", err)
    return refuse(503, "unavailable", "Try again.")
  end
  local code, limit, tokens, balance, free = reply[1], reply[2], reply[3], reply[4], reply[5]
  local header = ngx.header
  header["X-RateLimit-Limit"] = limit
  header["X-RateLimit-Remaining"] = floor(tokens / 60000)
  header["X-RateLimit-Reset"] = floor((limit * 60000 - tokens) / limit / 1000 + 0.999)
  header["X-Request-Id"] = ngx.var.request_id
  if code == 0 then
    header["X-ACF-Amount"] = free == 1 and "0" or format("%.6f", settings.price / 1e6)
    header["X-ACF-Free-Tier"] = free == 1 and "true" or "false"
    header["X-ACF-Usage-Id"] = ngx.var.request_id
    header["X-ACF-Balance"] = format("%.6f", balance / 1e6)
    return
  end
  if code == 1 then
    local wait = floor((60000 - tokens) / limit / 1000 + 0.999)
    header["Retry-After"] = wait
    return refuse(429, "rate_limited", "Too many requests. Try again in " .. wait .. " s.")
  end
  if code == 3 then return refuse(402, "insufficient_balance", "The balance does not cover the price.") end
  return refuse(401, "unauthorized", "Missing or invalid API key.")
end

return M
