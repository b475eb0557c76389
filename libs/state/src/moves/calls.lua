--[[ One page of what runs in the pool, for a plan: a scan of the leases (Pages.scan). Writes nothing but the clock.
ARGV[1] JSON: {cursor}   string
Reply: CallsPage
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 256
  local now = tx.now
  local running, others, groups = {}, {}, {}

  local function group_of(request)
    local name = request.job .. '/' .. request.groupId
    if not groups[name] then
      local field = redis.call('HMGET', tx.key:group(request.job, request.groupId), 'state', 'maxTokens',
        'longestTokens', 'samples', 'promptHash')
      groups[name] = { state = field[1], maxTokens = tonumber(field[2] or 0), longestTokens = tonumber(field[3] or 0),
        samples = tonumber(field[4] or 0),
        known = field[1] == 'live' and field[5] and PromptLengths.read(tx, field[5]) or nil }
    end
    return groups[name]
  end

  local page, cursor = Pages.scan('HSCAN', tx.key.leases, args.cursor, PAGE)
  for position = 1, #page, 2 do
    local lease = LeaseRecord.unpack(page[position + 1])
    local id = lease.requestId
    local request = Requests.load(tx, id)
    local is_ours = request and request.workerId == lease.workerId and request.workerEpoch == lease.workerEpoch
    local group = is_ours and (request.state == 'running' or request.state == 'claimed') and group_of(request)
    if group and group.state == 'live' then
      local field = redis.call('HMGET', tx.key:request(id), 'moves', 'movedAtMs', 'claimedAtMs', 'waiting')
      table.insert(running, {
        leaseId = Format.integer(lease.seq) .. '.' .. page[position], requestId = id, serverId = lease.serverId,
        epoch = lease.serverEpoch, attempt = request.attempt, contextTokens = lease.contextTokens or 0,
        heldTokens = request.tokens, madeTokens = request.savedTokens, maxTokens = group.maxTokens,
        longestTokens = group.longestTokens, samples = group.samples, known = group.known,
        moves = tonumber(field[1] or 0),
        sinceMoveMs = field[2] and math.max(0, now - tonumber(field[2])) or nil,
        ageMs = math.max(0, now - tonumber(field[3] or now)), waits = field[4] == '1',
      })
    else
      table.insert(others, { serverId = lease.serverId, epoch = lease.serverEpoch,
        contextTokens = lease.contextTokens or 0 })
    end
  end
  return Reply.object({ running = running, others = others, cursor = cursor })
end
