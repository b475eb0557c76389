--[[ Checks silent servers, the longest silent first: a server is suspect after `suspectAfterMs`, and failed after
`failedAfterMs` (a new epoch: leases and sessions are expired). When more than half of the watched servers are silent at
once, the network or this service is the likely cause: no server fails, and suspect servers are held: they still take
leases. The last server that takes leases is held in the same way. A server whose tokens flow does not fail: it stays
suspect, so that its calls end where they are. A server whose callers got no token for `silentAfterMs` is hung, whatever
its probes: it is suspect with a new epoch, so that its calls move, until one call gets a token (breaker.lua). A hung
server is only reported when more than half are hung, or too few others are left. A new start that has sent nothing yet
is `pending` and not checked: it may be loading weights.
ARGV[1] JSON: {suspectAfterMs, failedAfterMs, silentAfterMs: 0 or absent for never; cursor: number, by silence;
  newEpoch: of servers that fail or are hung}
Reply: ReviewedServers
Events: server.hung.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE, from = 128, args.cursor or 0
  local now = tx.now
  local limit = Format.integer(now - args.suspectAfterMs)
  local watched = redis.call('ZCARD', tx.key.watchedServers)
  local silent = redis.call('ZCOUNT', tx.key.watchedServers, '-inf', limit)
  local is_mass = silent * 2 > watched
  local suspected, failed, regained = {}, {}, {}

  -- True when the pool would have no usable server without this one.
  local function is_last(server)
    return Servers.is_usable(tx, server) and redis.call('SCARD', tx.key.usableServers) <= 1
  end

  local page = redis.call('ZRANGEBYSCORE', tx.key.watchedServers, '-inf', limit, 'WITHSCORES', 'LIMIT', from,
    PAGE)
  for index = 1, #page, 2 do
    local id, last_heard = page[index], tonumber(page[index + 1])
    local server = Servers.get(tx, id)
    local held = is_mass or (server ~= nil and is_last(server))
    if not server then
      redis.call('ZREM', tx.key.watchedServers, id)
    elseif not held and now - last_heard >= args.failedAfterMs
      and not Signs.is_alive(tx, id, args.failedAfterMs) then
      Servers.fail(tx, server, args.newEpoch)
      table.insert(failed, id)
    elseif server.state == 'ready' or (server.state == 'suspect' and server.held ~= held) then
      if server.state == 'ready' then table.insert(suspected, id) end
      if held then table.insert(regained, id) end
      server.state = 'suspect'
      server.held = held
      Servers.publish(tx, server)
    end
  end
  local hung = {}
  local after_ms = args.silentAfterMs or 0
  local found = from == 0 and after_ms > 0 and Signs.silent(tx, after_ms) or {}
  for _, one in ipairs(found) do
    local server = Servers.get(tx, one.id)
    if server and (server.state == 'ready' or server.state == 'suspect') then
      local sign = { serverId = one.id, epoch = server.epoch, silentMs = one.silentMs }
      sign.held = #found * 2 > watched or not Breaker.note_silence(tx, server, args.newEpoch)
      table.insert(hung, sign)
      if not sign.held then
        Events.add(tx, 'server.hung', { serverId = sign.serverId, epoch = sign.epoch, silentMs = sign.silentMs })
      end
    end
  end
  -- Failed servers have left the set, so the next page begins earlier by their number.
  local cursor = #page == 2 * PAGE and from + PAGE - #failed or nil
  return Waiters.reply(tx, regained, { silent = silent, watched = watched, held = is_mass, suspected = suspected,
    failed = failed, hung = hung, cursor = cursor })
end
