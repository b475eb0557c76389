-- A server as it is stored in the hash of records: numbers and the epoch in binary (FORMAT), which costs a choice least
-- to read; then its trouble, if it has any (TROUBLE); then what callers must know of it, as a member of a JSON object;
-- then a line break and the instanceId.
local ServerRecord = {}

-- Place in STATES; 1 or 0 for held; 1 for cordoned, 2 for withheld (no source lists its engine as ready), 3 for both;
-- 1 or 0 for not probed; maxInflight, weight, weightVersion; limit, startedAtMs and drainUntilMs, 0 for none; epoch.
local FORMAT = '<BBBBdddddds'
local EPOCH_AT = 53 -- byte at which the epoch begins; it has neither a quote nor a line break
-- Failed calls in a row, pauses in a row, the time before which it takes no new leases (0: none), and the sum of 1 if
-- one call is to show then whether it serves again and 2 if its callers got no tokens. See breaker.lua.
local TROUBLE, TROUBLE_FORMAT = '^(%d+)|(%d+)|(%d+)|(%d)', '%.0f|%.0f|%.0f|%d'
local QUOTE = 34 -- byte with which the JSON begins
local STATES = { 'pending', 'ready', 'suspect', 'failed' }
local DESCRIBED = { 'epoch', 'weightVersion', 'endpoint', 'dialect', 'model' }
-- First in the JSON object, where it is found soonest: when the weights were last reported, as a text, with a minus
-- while the engine must empty its prefix cache before they count; and how the cache is kept free of entries of other
-- weights (CACHES, or nothing). Absent in records of a version before.
local WEIGHTS = '"weightsAtMs":"%s","cache":"%s",'
local WEIGHTS_BEGIN, WEIGHTS_PATTERN = '"weightsAtMs":"', '^"weightsAtMs":"(%-?)(%d*)","cache":"(%a*)",()'

-- The engine keeps entries apart by a salt of each request, or has a route that empties its cache.
ServerRecord.CACHES = { salt = 'salt', reset = 'reset' }

function ServerRecord.unpack(id, packed)
  local state, held, cordoned, unprobed, most, weight, version, limit, started_at, drain_until, epoch =
    struct.unpack(FORMAT, packed)
  local server = {
    id = id,
    epoch = epoch,
    state = STATES[state],
    held = held == 1,
    cordoned = cordoned % 2 == 1,
    withheld = cordoned >= 2,
    probed = unprobed == 0,
    maxInflight = most,
    weight = weight,
    weightVersion = version,
    record = packed,
  }
  -- Outside the constructor, which would reserve memory for them also where they are absent, as they mostly are.
  if limit ~= 0 then server.limit = limit end
  if started_at ~= 0 then server.startedAtMs = started_at end
  if drain_until ~= 0 then server.drainUntilMs = drain_until end
  local after_epoch = EPOCH_AT + #epoch + 1
  if string.byte(packed, after_epoch) ~= QUOTE then
    local failures, refusals, until_ms, tried = string.match(packed, TROUBLE, after_epoch)
    tried = tonumber(tried)
    server.trouble = { failures = tonumber(failures), refusals = tonumber(refusals), untilMs = tonumber(until_ms),
      isUntried = tried % 2 == 1, isSilent = tried >= 2 or nil }
  end
  return server
end

local function trouble_text(trouble)
  if not trouble then return '' end
  return string.format(TROUBLE_FORMAT, trouble.failures, trouble.refusals, trouble.untilMs,
    (trouble.isUntried and 1 or 0) + (trouble.isSilent and 2 or 0))
end

-- The address of a server and its weights: `"<id>":{...}`.
local function described_text(server)
  local record = server.record
  return string.sub(record, string.find(record, '"', EPOCH_AT, true), string.find(record, '\n', EPOCH_AT, true) - 1)
end

-- When the weights were last reported, by weights/weight-clock.lua (0: never); whether the engine must empty its prefix
-- cache before they count (ServerWeights.await_reset); and one of CACHES or nothing.
function ServerRecord.weights(server)
  local record = server.record
  local start = string.find(record, WEIGHTS_BEGIN, EPOCH_AT, true)
  if not start then return 0, false, '' end
  local sign, at, cache = string.match(record, WEIGHTS_PATTERN, start)
  return tonumber(at) or 0, sign == '-', cache
end

-- What a caller must know of a server: `"<id>":{...}`. `salt` is a text, for an engine that has salts.
function ServerRecord.describe(server, salt)
  local text = described_text(server)
  local start = string.find(text, WEIGHTS_BEGIN, 1, true)
  if not start then return text end
  local _, _, cache, rest = string.match(text, WEIGHTS_PATTERN, start)
  local salted = cache == ServerRecord.CACHES.salt and '"cacheSalt":"' .. salt .. '",' or ''
  return string.sub(text, 1, start - 1) .. salted .. string.sub(text, rest)
end

-- {endpoint, dialect, model?}
function ServerRecord.address_of(server)
  local _, address = next(cjson.decode('{' .. described_text(server) .. '}'))
  return address
end

-- What names this start of the server, or nil.
function ServerRecord.instance_of(server) return (string.match(server.record, '\n(.+)$', EPOCH_AT)) end

-- All fields of a record by name; `packed` may be false.
function ServerRecord.fields(packed)
  if not packed then return { state = 'pending', probed = true } end
  local fields = ServerRecord.unpack(nil, packed)
  local address = ServerRecord.address_of(fields)
  fields.endpoint, fields.dialect, fields.model = address.endpoint, address.dialect, address.model
  fields.weightsAtMs, fields.cache = address.weightsAtMs, address.cache
  fields.instanceId = ServerRecord.instance_of(fields)
  return fields
end

local function flag(is_set) return is_set and 1 or 0 end

function ServerRecord.pack(id, fields)
  local state, described = nil, {}
  for place, name in ipairs(STATES) do
    if name == fields.state then state = place end
  end
  for _, name in ipairs(DESCRIBED) do described[name] = fields[name] end
  local closed = flag(fields.cordoned) + 2 * flag(fields.withheld)
  return struct.pack(FORMAT, state, flag(fields.held), closed, flag(not fields.probed), fields.maxInflight,
    fields.weight, fields.weightVersion, fields.limit or 0, fields.startedAtMs or 0,
    fields.drainUntilMs or 0, fields.epoch) .. trouble_text(fields.trouble) .. '"' .. id .. '":'
    .. '{' .. string.format(WEIGHTS, fields.weightsAtMs or '', fields.cache or '')
    .. string.sub(cjson.encode(described), 2) .. '\n' .. (fields.instanceId or '')
end

return ServerRecord
