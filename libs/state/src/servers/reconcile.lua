--[[ Checks one page of the leases of a server's current epoch: leases of expired worker epochs are returned, and every
live holder is asked for a sync, which returns leases that the holder does not have. Leases that a live worker epoch may
still hold are not changed here. New room goes to waiters.
ARGV[1] JSON: {serverId; epoch: the call applies only to this epoch, or absent; cursor: string}
Reply: ReconciledPage
A repeat returns no lease twice; it asks again for a sync that is under way already.
Errors: SERVER_NOT_FOUND, FENCED.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local server, refused = Servers.named(tx, args)
  if not server then return refused end
  local holders, holder_of = {}, {}
  local returned = 0

  local function ask_holder(lease)
    local holder = holder_of[lease.workerId]
    if not holder then
      holder = { workerId = lease.workerId, workerEpoch = lease.workerEpoch, leases = 0 }
      holder_of[lease.workerId] = holder
      table.insert(holders, holder)
      redis.call('HSET', tx.key:worker(lease.workerId), 'syncAsked', '1')
    end
    holder.leases = holder.leases + 1
  end

  local index = tx.key:serverLeases(server.id, server.epoch)
  local page, cursor = Pages.scan('SSCAN', index, args.cursor, PAGE)
  local seen = {} -- a scan may name a lease twice
  for _, acquire_id in ipairs(page) do
    local packed = not seen[acquire_id] and redis.call('HGET', tx.key.leases, acquire_id)
    seen[acquire_id] = true
    if packed then
      local lease = LeaseRecord.unpack(packed)
      if Leases.is_current_worker(tx, lease.workerId, lease.workerEpoch) then
        ask_holder(lease)
      else
        Leases.give_back(tx, acquire_id, lease)
        returned = returned + 1
      end
    end
  end
  return Waiters.reply(tx, returned > 0 and { server.id } or {}, function()
    local report = Servers.load_report(tx, server)
    local reply = { leases = server.load, returned = returned, holders = holders, cursor = cursor }
    if report then
      reply.engineRunning, reply.engineWaiting, reply.reportAgeMs = report.running, report.waiting, report.ageMs
      reply.drift = server.load - report.running - report.waiting
    end
    return reply
  end)
end
