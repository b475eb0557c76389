--[[ Registers a server, or confirms it. The same instanceId keeps epoch, leases, sessions and state, and changes only
the description of the server; so does a repeat of a call without an instanceId (registrationId). Another or an unknown
instanceId starts a new epoch, and expires leases and sessions. A new start is `pending` until its engine has described
itself (servers/update) or it sends heartbeats. New room goes to waiters.
ARGV[1] JSON: {serverId, endpoint, writtenEndpoint, dialect, maxInflight, weight, weightVersion, instanceId, model,
  capabilities, labels, probe, lacks, models, discovered, listedAs, registrationId, newEpoch}: ServerRegistration,
  capabilities and labels as JSON texts, models one a line
  serverId        stays with the address of its server: another start at another address gets the id only when the
                  server is silent, failed or leaves, or has not answered yet
  instanceId      a start (`started-<seconds>`) that is not later than the known start is no new start, since any of
                  several processes behind one address may have answered
  weightVersion   absent: the version stays for the same start of the server, else it is 0; a discovered server takes
                  only its first version from the call, later the probes read it
  probe           false: only callers can reach the server, which is ready at once
  discovered      the server is ready at once, since the list has just asked its engine. A known server keeps its
                  settings. A server whose drain has ended stays away until it is registered by name or starts again
  listedAs        an engine that is listed as another engine than before is a new start, whatever its instanceId; being
                  listed ends a withholding or drain that the list began
A cordon or drain that was requested by name outlives a restart of the server. A fenced server stays failed until it
starts again. The engine of a server that was not registered is resumed once, in case Redis has lost its pause.
Reply: RegisteredServer; a server that stays away has the state `removed` and an empty epoch
Errors: SERVER_ID_TAKEN; FENCED: a repeat of an earlier registration arrives late, after a newer registration.
Flags: allow-oom ]]
local FORMER_KEPT = 8 -- former registrations of a server whose late repeats are known
local UNKNOWN_START = 'unknown' -- instanceId of every start that has no name (libs/engines/src/detect-engine.ts)

-- True when another engine, which lives at another address, has the id.
local function is_taken(known, args)
  local endpoint = ServerRecord.address_of(known).endpoint
  local is_elsewhere = endpoint ~= args.endpoint and endpoint ~= args.writtenEndpoint
  return is_elsewhere and known.state == 'ready' and not known.drainUntilMs
end

-- Former registrations of a known server, and its last one.
local function registrations_of(tx, id)
  local stored = redis.call('HMGET', tx.key:server(id), 'formerRegistrations', 'registrationId')
  return stored[1] and cjson.decode(stored[1]) or {}, stored[2]
end

-- Stores a registration; the last registration becomes a former registration.
local function note_registration(tx, id, registration_id, former, last)
  if last and last ~= registration_id then table.insert(former, last) end
  if #former > FORMER_KEPT then table.remove(former, 1) end
  if former[1] then ServerHash.set(tx, id, 'formerRegistrations', cjson.encode(former)) end
  if registration_id then ServerHash.set(tx, id, 'registrationId', registration_id)
  else ServerHash.unset(tx, id, 'registrationId') end
end

return function(tx, args)
  local now = tx.now
  local id = args.serverId
  local known = Servers.get(tx, id)
  local instance_id = args.instanceId
  local discovered = args.discovered
  local known_instance_id = known and ServerRecord.instance_of(known)
  local known_as = known and redis.call('HGET', tx.key:server(id), 'listedAs')
  local is_other = known_as and args.listedAs ~= nil and known_as ~= args.listedAs
  local registration_id = args.registrationId
  local former, last = registrations_of(tx, id)
  local is_repeat = known and registration_id and not instance_id and last == registration_id
  if is_repeat then
    instance_id = known_instance_id
  elseif known and discovered and not is_other and EngineReport.is_no_later(tx, id, instance_id, known_instance_id) then
    instance_id = known_instance_id
  end
  local same_start = (is_repeat or known and instance_id and known_instance_id == instance_id) and not is_other
  for _, one in ipairs(known and not same_start and former or {}) do
    if one == registration_id then
      return Reply.fail('FENCED', 'The server has registered again since this registration was sent', 'registrationId')
    end
  end
  if known and is_taken(known, args) and (not same_start or instance_id == UNKNOWN_START) then
    return Reply.fail('SERVER_ID_TAKEN', 'Another engine answers under this id at '
      .. ServerRecord.address_of(known).endpoint, 'serverId')
  end
  if not known then
    local drained = redis.call('GET', tx.key:drained(id))
    local start, listed_as = string.match(drained or '', '^([^\n]*)\n?(.*)$')
    local is_same_engine = listed_as == '' or args.listedAs == nil or listed_as == args.listedAs
    local stays_away = is_same_engine
      and (start == (instance_id or '') or EngineReport.is_no_later(tx, id, instance_id, start))
    if drained and discovered and stays_away then
      return Waiters.reply(tx, {}, { serverId = id, epoch = '', state = 'removed' })
    end
    if drained then redis.call('DEL', tx.key:drained(id)) end
  end
  local epoch = same_start and known.epoch or args.newEpoch
  local weight_version = args.weightVersion or 0
  local max_inflight, weight = args.maxInflight, args.weight
  if same_start and discovered then
    max_inflight, weight, weight_version = known.maxInflight, known.weight, known.weightVersion
  elseif same_start then
    -- A server that names the same start has the weights that it had before it failed.
    weight_version = args.weightVersion or tonumber(redis.call('HGET', tx.key:server(id), 'versionBefore') or nil)
      or known.weightVersion
    ServerHash.unset(tx, id, 'versionBefore')
  end
  if known and not same_start then Servers.expire_epoch(tx, id, known.epoch) end
  local drain_until = known and known.drainUntilMs
  if drain_until and discovered and redis.call('HGET', tx.key:server(id), 'drainedBy') == 'list' then
    drain_until = nil
    ServerHash.unset(tx, id, 'drainedBy')
    redis.call('ZREM', tx.key.drainingServers, id)
  end
  if not same_start then
    Servers.set_lacks(tx, id, '')
    Models.set(tx, id, '')
    ServerHash.delete(tx, id)
  end

  -- A new start reports the weights that it begins with; for the same start only a given version is a report.
  local is_report = not same_start or args.weightVersion and not discovered
  local probed = args.probe ~= false
  if same_start and discovered then probed = known.probed end
  local was_heard = same_start and known.state ~= 'pending'
  local state = was_heard and known.state or (discovered or not probed) and 'ready' or 'pending'
  ServerHash.change(tx, id, {
    epoch = epoch,
    state = state,
    endpoint = args.endpoint,
    dialect = args.dialect,
    model = args.model or false,
    instanceId = instance_id or false,
    maxInflight = max_inflight,
    weight = weight,
    weightVersion = weight_version,
    weightsAtMs = is_report and WeightClock.next(tx) or nil,
    cache = same_start and ServerRecord.fields(known.record).cache,
    probed = probed,
    cordoned = known and known.cordoned,
    drainUntilMs = drain_until or false,
    withheld = known and not discovered and known.withheld,
  })
  for _, field in ipairs({ 'capabilities', 'labels' }) do
    if args[field] then ServerHash.set(tx, id, field, args[field]) end
  end
  note_registration(tx, id, registration_id, former, last)
  if args.listedAs then ServerHash.set(tx, id, 'listedAs', args.listedAs) end
  if is_report then ServerHash.unset(tx, id, 'pendingVersion') end
  if args.capabilities then ServerWeights.set_cache(tx, id, args.capabilities) end
  if args.lacks then Servers.set_lacks(tx, id, args.lacks) end
  if args.models then Models.set(tx, id, args.models) end
  redis.call('ZADD', tx.key.servers, 'NX', Format.integer(now), id)
  if state == 'pending' and not same_start then redis.call('ZADD', tx.key.pendingServers, Format.integer(now), id) end
  if state == 'ready' and not was_heard then redis.call('ZADD', tx.key.watchedServers, Format.integer(now), id) end
  tx.known_servers[id] = nil
  local server = Servers.get(tx, id)
  if not known then
    PausedEngines.resume_unrecorded(tx, server)
    -- Most transitions of leases read and write a field of these hashes for each lease.
    Encodings.hash_as_table(tx.key.serverChosen)
    Encodings.hash_as_table(tx.key.requestLeases)
  end
  if not was_heard then Servers.begin_slow_start(tx, server) end
  Servers.publish(tx, server)

  return Waiters.reply(tx, { id }, { serverId = id, epoch = epoch, state = Servers.shown_state(tx, server) })
end
