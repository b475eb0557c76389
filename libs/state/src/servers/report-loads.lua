--[[ Stores the loads that engines reported, with the time. A count of tokens that has changed since the previous report
is a sign of life (signs.lua). When the pool adapts the concurrency of its servers, one report of a server in each
adaptIntervalMs is returned for a decision, to one replica only; no decision is made here.
ARGV[1] JSON: {reports: list of LoadReport, at most 128}
Reply: ReportLoadsReply
A report of an unknown server or of another epoch is ignored.
Flags: allow-oom ]]
return function(tx, args)
  local now = tx.now
  local interval = Settings.get(tx, 'adaptiveConcurrency') == '1' and (Settings.number(tx, 'adaptIntervalMs') or 2000)
    or nil
  local drifts, due = {}, {}

  local function save(server, report)
    local name = tx.key:server(server.id)
    local counted = report.tokens and redis.call('HGET', name, 'loadTokens')
    if counted and tonumber(counted) ~= report.tokens then Signs.note(tx, server.id, now) end
    redis.call('HDEL', name, 'kvUse', 'kvTokens', 'loadPreemptions', 'loadUncachedTokens', 'loadTokens')
    if tx.admits_by_kv then Residency.set_capacity(tx, server.id, report.kvTokens) end
    Hashes.set(name, { loadRunning = report.running, loadWaiting = report.waiting, loadAtMs = Format.integer(now),
      kvUse = report.kvUse, kvTokens = report.kvTokens, loadPreemptions = report.preemptions,
      loadUncachedTokens = report.uncachedTokens, loadTokens = report.tokens })
  end

  -- The first report only sets the mark from which preemptions are counted.
  local function decide_now(server, report)
    local name = tx.key:server(server.id)
    local last = redis.call('HMGET', name, 'limitAtMs', 'limitPreemptions')
    if last[1] and now - tonumber(last[1]) < interval then return end
    local preemptions = report.preemptions or 0
    redis.call('HSET', name, 'limitAtMs', Format.integer(now), 'limitPreemptions', Format.integer(preemptions))
    if not last[1] then return end
    table.insert(due, {
      serverId = server.id,
      epoch = server.epoch,
      limit = server.limit or server.maxInflight,
      maxInflight = server.maxInflight,
      inflight = server.load,
      running = report.running,
      waiting = report.waiting,
      kvUse = report.kvUse,
      newPreemptions = math.max(0, preemptions - tonumber(last[2])),
    })
  end

  for _, report in ipairs(args.reports) do
    local server = Servers.get(tx, report.serverId)
    if server and server.epoch == report.epoch then
      save(server, report)
      -- Under least-tokens the tokens that are still to be prefilled count.
      if Scores.go_by(tx, 'tokens') then Servers.rescore(tx, server) end
      table.insert(drifts, { serverId = server.id, drift = server.load - report.running - report.waiting })
      if interval then decide_now(server, report) end
    end
  end
  return '{"drifts":' .. Reply.list(drifts) .. ',"due":' .. Reply.list(due) .. '}'
end
