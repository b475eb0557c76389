-- A server as it is stored in the hash of records: numbers and the epoch in binary (FORMAT), which is cheapest to read
-- for a choice; then its trouble, if it has any (TROUBLE); then its description for callers, a member of a JSON object;
-- then a line break and the instanceId.
local ServerRecord = {}

-- Values of FORMAT, in order:
--   state              place in STATES
--   held               1 or 0
--   flags              the sum of 1 for cordoned, 2 for withheld (no source lists its engine as ready) and 4 while the
--                      engine must empty its prefix cache before its weights count (ServerWeights.await_reset)
--   not probed         1 or 0
--   maxInflight, weight, weightVersion
--   limit, startedAtMs, drainUntilMs   0 for none
--   epoch
local FORMAT = '<BBBBdddddds'
local EPOCH_AT = 53 -- byte at which the epoch begins; it has neither a quote nor a line break
-- Values of TROUBLE (breaker.lua), in order:
--   failures           failed calls in a row
--   refusals           pauses in a row
--   untilMs            the time before which the server takes no new leases; 0 for none
--   flags              the sum of 1 if one call then has to show whether the server serves again, and 2 if its callers
--                      got no tokens
local TROUBLE, TROUBLE_FORMAT = '^(%d+)|(%d+)|(%d+)|(%d)', '%.0f|%.0f|%.0f|%d'
local QUOTE, SALT = 34, 115 -- bytes: QUOTE begins the JSON; SALT may be in WEIGHTS
local STATES = { 'pending', 'ready', 'suspect', 'failed' }
local DESCRIBED = { 'epoch', 'weightVersion', 'endpoint', 'dialect', 'model' }
-- Last member of the JSON object, always of the same length, so that every choice finds it at once: when the weights
-- were last reported (WeightClock), and how the cache is kept free of entries of other weights (CACHES). Absent in
-- records of earlier versions.
local WEIGHTS, WEIGHTS_MARK = ',"weights":"%013.0f%s"}', 119 -- byte: the w of its name
local WEIGHTS_BYTES, NAME_BYTES, TIME_BYTES = 28, 3, 13 -- length of WEIGHTS, of its start up to that w, and of the time

-- Kinds of engine caches: entries are kept apart by a salt of each request, or a route empties the cache.
ServerRecord.CACHES = { salt = 's', reset = 'r', none = '-' }

function ServerRecord.unpack(id, packed)
  local state, held, cordoned, unprobed, most, weight, version, limit, started_at, drain_until, epoch =
    struct.unpack(FORMAT, packed)
  local server = {
    id = id,
    epoch = epoch,
    state = STATES[state],
    held = held == 1,
    cordoned = cordoned % 2 == 1,
    withheld = cordoned % 4 >= 2,
    probed = unprobed == 0,
    maxInflight = most,
    weight = weight,
    weightVersion = version,
    record = packed,
  }
  -- Optional fields are set outside the constructor, which would reserve memory for them in every server.
  if cordoned >= 4 then server.awaitsReset = true end
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

-- Where the JSON ends, and where the weights begin in it; nil without weights.
local function end_places(record)
  local last = string.find(record, '\n', EPOCH_AT, true) - 1
  local weights = last - WEIGHTS_BYTES + 1
  return last, string.byte(record, weights + NAME_BYTES - 1) == WEIGHTS_MARK and weights or nil
end

-- When the weights were last reported (0: never), and one of CACHES.
function ServerRecord.weights(server)
  local record = server.record
  local last, weights = end_places(record)
  if not weights then return 0, ServerRecord.CACHES.none end
  local cache_at = last - 2
  return tonumber(string.sub(record, cache_at - TIME_BYTES, cache_at - 1)), string.sub(record, cache_at, cache_at)
end

local function json_start(record) return (string.find(record, '"', EPOCH_AT, true)) end

-- Description of a server for callers: `"<id>":{...}`, with `cacheSalt` for an engine that has salts: the time of the
-- last report of its weights, or `began` if that is later.
function ServerRecord.describe(server, began)
  local record = server.record
  local first, last, weights = json_start(record), end_places(record)
  if not weights then return string.sub(record, first, last) end
  local cache_at = last - 2
  if string.byte(record, cache_at) ~= SALT then return string.sub(record, first, weights - 1) .. '}' end
  local salt = string.sub(record, cache_at - TIME_BYTES, cache_at - 1)
  if began and began > tonumber(salt) then salt = Format.integer(began) end
  return string.sub(record, first, weights - 1) .. ',"cacheSalt":"' .. salt .. '"}'
end

-- {endpoint, dialect, model?}
function ServerRecord.address_of(server)
  local record = server.record
  local _, address = next(cjson.decode('{' .. string.sub(record, json_start(record), (end_places(record))) .. '}'))
  return address
end

-- The instanceId, which names the start of the server, or nil.
function ServerRecord.instance_of(server) return (string.match(server.record, '\n(.+)$', EPOCH_AT)) end

-- All fields of a record by name; `packed` may be false.
function ServerRecord.fields(packed)
  if not packed then return { state = 'pending', probed = true } end
  local fields = ServerRecord.unpack(nil, packed)
  local address = ServerRecord.address_of(fields)
  fields.endpoint, fields.dialect, fields.model = address.endpoint, address.dialect, address.model
  fields.weightsAtMs, fields.cache = ServerRecord.weights(fields)
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
  local closed = flag(fields.cordoned) + 2 * flag(fields.withheld) + 4 * flag(fields.awaitsReset)
  return struct.pack(FORMAT, state, flag(fields.held), closed, flag(not fields.probed), fields.maxInflight,
    fields.weight, fields.weightVersion, fields.limit or 0, fields.startedAtMs or 0,
    fields.drainUntilMs or 0, fields.epoch) .. trouble_text(fields.trouble) .. '"' .. id .. '":'
    .. string.sub(cjson.encode(described), 1, -2)
    .. string.format(WEIGHTS, fields.weightsAtMs or 0, fields.cache or ServerRecord.CACHES.none)
    .. '\n' .. (fields.instanceId or '')
end

return ServerRecord
