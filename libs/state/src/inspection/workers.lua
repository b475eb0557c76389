--[[ One page of the live worker epochs, the longest silent of the page first; a scan (Pages.list). Writes nothing but
the clock.
ARGV[1] JSON: {cursor, limit}: ListWorkersRequest
Reply: ListWorkersReply
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local now = tx.now
  local workers = {}
  local page, cursor = Pages.list('ZSCAN', tx.key.workers, args.cursor, PAGE, args.limit or PAGE)
  for position = 1, #page, 2 do
    local id, ends_at = page[position], tonumber(page[position + 1])
    local field = redis.call('HMGET', tx.key:worker(id), 'liveEpoch', 'ttlMs', 'registeredAtMs', 'syncAsked')
    if field[1] then
      table.insert(workers, {
        workerId = id, workerEpoch = field[1], ttlMs = tonumber(field[2]),
        heartbeatAgeMs = math.max(0, now - ends_at + tonumber(field[2])),
        ageMs = math.max(0, now - tonumber(field[3] or now)),
        leases = redis.call('SCARD', tx.key:workerLeases(id, field[1])),
        attempts = redis.call('SCARD', tx.key:workerAttempts(id, field[1])), syncAsked = field[4] and true or nil,
      })
    end
  end
  table.sort(workers, function(one, other) return one.heartbeatAgeMs > other.heartbeatAgeMs end)
  return Reply.object({ workers = workers, cursor = cursor })
end
