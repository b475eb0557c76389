--[[ One page of the calls that run in the pool, for a plan: a scan of the leases (Pages.scan). Writes nothing but the
clock.
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
      local group = Group.load(tx, request.job, request.groupId) or {}
      if group.state == 'live' then
        local prompt = Group.read_past(tx, Group.read_made(tx, group)).promptHash
        group.known = prompt and PromptLengths.read(tx, prompt) or nil
      end
      groups[name] = group
    end
    return groups[name]
  end

  local page, cursor = Pages.scan('HSCAN', tx.key.leases, args.cursor, PAGE)
  for position = 1, #page, 2 do
    local lease = LeaseRecord.unpack(page[position + 1])
    local id = lease.requestId
    local request = Request.load(tx, id)
    local is_ours = request and request.workerId == lease.workerId and request.workerEpoch == lease.workerEpoch
    local group = is_ours and (request.state == 'running' or request.state == 'claimed') and group_of(request)
    if group and group.state == 'live' then
      Request.read_moves(tx, Request.read_times(tx, request))
      table.insert(running, {
        leaseId = Format.integer(lease.seq) .. '.' .. page[position], requestId = id, serverId = lease.serverId,
        epoch = lease.serverEpoch, attempt = request.attempt, contextTokens = lease.contextTokens or 0,
        heldTokens = request.tokens, madeTokens = request.savedTokens, maxTokens = group.maxTokens or 0,
        longestTokens = group.longestTokens, samples = group.samples, known = group.known,
        moves = request.moves, sinceMoveMs = request.movedAtMs and math.max(0, now - request.movedAtMs) or nil,
        ageMs = math.max(0, now - (request.claimedAtMs or now)), waits = request.waiting,
      })
    else
      table.insert(others, { serverId = lease.serverId, epoch = lease.serverEpoch,
        contextTokens = lease.contextTokens or 0 })
    end
  end
  return Reply.object({ running = running, others = others, cursor = cursor })
end
