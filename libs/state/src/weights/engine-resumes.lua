--[[ Lists one page of paused engines that are to resume: the change for which they were paused has ended, or their
server has left the pool or has another address. An engine is listed again, less and less often, until
weights/engine-told. After GIVE_UP_MS it is given up. For all replicas, its entry then stays for GIVE_UP_MS more, and
while its server is registered. When the server answers again after a time without an answer, the engine is listed
again. An engine that is recorded only because its entry may be lost is not listed while the pool is paused by hand: a
trainer may have paused the engine with the pool.
ARGV[1] JSON: {cursor}   string
Reply: EngineResumesPage
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local OVERDUE_MS, GIVE_UP_MS = 60000, 3600000
  local PROMPT_TRIES, FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 3, 250, 30000
  local sync, now = Weights.sync(tx), tx.now
  local steps, given_up, overdue = {}, {}, 0

  local function server_of(name, entry)
    local server = Servers.get(tx, entry.serverId)
    return server and PausedEngines.name_of(server) == name and server or nil
  end

  local function is_held(name, entry)
    return sync ~= nil and sync.syncId == entry.syncId and server_of(name, entry) ~= nil
  end

  local function is_kept(entry) return entry.syncId == '' and Settings.get(tx, 'paused') == '1' end

  local function keep(name, entry)
    if not entry.resumeAtMs then return end
    entry.resumeAtMs, entry.tries, entry.nextAtMs = nil, nil, nil
    PausedEngines.save(tx, name, entry)
  end

  local function review_given_up(name, entry)
    local server = server_of(name, entry)
    if not server and now - entry.givenUpAtMs > GIVE_UP_MS then
      redis.call('HDEL', tx.key.pausedEngines, name)
    elseif not entry.isAway and (not server or server.state == 'failed' or server.state == 'pending') then
      entry.isAway = true
      PausedEngines.save(tx, name, entry)
    elseif entry.isAway and server and server.state == 'ready' then
      PausedEngines.save(tx, name, { syncId = entry.syncId, serverId = entry.serverId, state = entry.state,
        askedAtMs = entry.askedAtMs, resumeAtMs = now })
    end
  end

  local function tell(name, entry)
    entry.tries = (entry.tries or 0) + 1
    local pause = entry.tries < PROMPT_TRIES and 0 or FIRST_PAUSE_MS * 2 ^ math.min(entry.tries - PROMPT_TRIES, 16)
    entry.nextAtMs = now + math.min(LONGEST_PAUSE_MS, pause)
    PausedEngines.save(tx, name, entry)
  end

  local page, cursor = Pages.scan('HSCAN', tx.key.pausedEngines, args.cursor, PAGE)
  for position = 1, #page, 2 do
    local name, entry = page[position], cjson.decode(page[position + 1])
    local dialect, endpoint = string.match(name, '^(%a+)|(.*)$')
    local step = { serverId = entry.serverId, endpoint = endpoint, dialect = dialect, syncId = entry.syncId }
    if entry.givenUpAtMs then
      review_given_up(name, entry)
    elseif is_kept(entry) then
      keep(name, entry)
    elseif entry.resumeAtMs or not is_held(name, entry) then
      entry.resumeAtMs = entry.resumeAtMs or now
      local age = now - entry.resumeAtMs
      if age > GIVE_UP_MS then
        entry.givenUpAtMs = now
        PausedEngines.save(tx, name, entry)
        table.insert(given_up, step)
      else
        if age > OVERDUE_MS then overdue = overdue + 1 end
        if now >= (entry.nextAtMs or 0) then
          tell(name, entry)
          table.insert(steps, step)
        end
      end
    end
  end
  return Reply.object({ steps = steps, overdue = overdue, givenUp = given_up, cursor = cursor })
end
