--[[ One page of the worker epochs that live; a scan: each one that is there all the time comes at least once. Writes
nothing but the clock.
ARGV[1] JSON: {cursor}   string, '0' to begin
Reply: workers   list of {workerId, workerEpoch, heartbeatAgeMs, ttlMs, ageMs, leases, attempts, syncAsked?}
       cursor    string, '0' at the end
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local now = tx.now
  local workers = {}
  local page = redis.call('ZSCAN', tx.key.workers, args.cursor, 'COUNT', PAGE)
  for position = 1, #page[2], 2 do
    local id, ends_at = page[2][position], tonumber(page[2][position + 1])
    local field = redis.call('HMGET', tx.key:worker(id), 'liveEpoch', 'ttlMs', 'registeredAtMs', 'syncAsked')
    if field[1] then
      table.insert(workers, {
        workerId = id, workerEpoch = field[1], ttlMs = tonumber(field[2]),
        heartbeatAgeMs = math.max(0, now - ends_at + tonumber(field[2])), ageMs = math.max(0, now - tonumber(field[3]
          or now)),
        leases = redis.call('SCARD', tx.key:workerLeases(id, field[1])),
        attempts = redis.call('SCARD', tx.key:workerAttempts(id, field[1])), syncAsked = field[4] and true or nil,
      })
    end
  end
  return '{"workers":' .. Reply.list(workers) .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
end
