-- A server as it is stored in the hash of records: numbers and the epoch in binary (FORMAT), which costs a choice least
-- to read; then what callers must know of it, as a member of a JSON object; then a line break and the instanceId.
local ServerRecord = {}

-- Place in STATES; 1 or 0 for held, cordoned and not probed; maxInflight, weight, weightVersion; limit, startedAtMs and
-- drainUntilMs, 0 for none; epoch.
local FORMAT = '<BBBBdddddds'
local STATES = { 'pending', 'ready', 'suspect', 'failed' }
local DESCRIBED = { 'epoch', 'weightVersion', 'endpoint', 'dialect', 'model' }

local function number_or_nil(number) return number ~= 0 and number or nil end

function ServerRecord.unpack(id, packed)
  local state, held, cordoned, unprobed, most, weight, version, limit, started_at, drain_until, epoch, texts_at =
    struct.unpack(FORMAT, packed)
  return {
    id = id,
    epoch = epoch,
    state = STATES[state],
    held = held == 1,
    cordoned = cordoned == 1,
    probed = unprobed == 0,
    maxInflight = most,
    weight = weight,
    weightVersion = version,
    limit = number_or_nil(limit),
    startedAtMs = number_or_nil(started_at),
    drainUntilMs = number_or_nil(drain_until),
    record = packed,
    textsAt = texts_at,
  }
end

-- What a caller must know of a server: `"<id>":{...}`.
function ServerRecord.describe(server)
  return string.sub(server.record, server.textsAt, string.find(server.record, '\n', server.textsAt, true) - 1)
end

-- {endpoint, dialect, model?}
function ServerRecord.address_of(server)
  local _, address = next(cjson.decode('{' .. ServerRecord.describe(server) .. '}'))
  return address
end

-- What names this start of the server, or nil.
function ServerRecord.instance_of(server) return (string.match(server.record, '\n(.+)$', server.textsAt)) end

-- All fields of a record by name; `packed` may be false.
function ServerRecord.fields(packed)
  if not packed then return { state = 'pending', probed = true } end
  local fields = ServerRecord.unpack(nil, packed)
  local address = ServerRecord.address_of(fields)
  fields.endpoint, fields.dialect, fields.model = address.endpoint, address.dialect, address.model
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
  return struct.pack(FORMAT, state, flag(fields.held), flag(fields.cordoned), flag(not fields.probed),
    fields.maxInflight, fields.weight, fields.weightVersion, fields.limit or 0, fields.startedAtMs or 0,
    fields.drainUntilMs or 0, fields.epoch) .. '"' .. id .. '":' .. cjson.encode(described) .. '\n'
    .. (fields.instanceId or '')
end

return ServerRecord
