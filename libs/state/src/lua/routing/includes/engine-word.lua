--- @include "servers"
-- What an engine says of itself, beside what it was registered with. A later start than it had is a restart: a new epoch,
-- whose weights are unknown until somebody names them. Its own word for its weights counts when it changes, so a word that
-- is read late undoes nothing that was said since.

local function restart_server(server, new_epoch, now)
  unset_server(server.id, 'fenced')
  fail_server(server, new_epoch)
  unset_server(server.id, 'versionBefore')
  server.state = 'ready'
  redis.call('ZADD', key.watchedServers, string.format('%.0f', now), server.id)
  begin_slow_start(server)
end

-- `said`: {startedAtSeconds?, weightVersion?}; a weightVersion below 0: it has no number for its weights. True for a restart.
local function heed(server, said, new_epoch, now)
  local started_at, word = optional(said.startedAtSeconds), optional(said.weightVersion)
  local known = tonumber(redis.call('HGET', key.server(server.id), 'engineStartedAt') or nil)
  local is_restart = known ~= nil and started_at ~= nil and started_at > known
  if is_restart then
    restart_server(server, new_epoch, now)
  elseif known and started_at == known then
    -- It had failed, and has the weights that it had.
    local before = redis.call('HGET', key.server(server.id), 'versionBefore')
    if before then set_version(server, tonumber(before)) end
  end
  if started_at and (is_restart or not known) then
    set_server(server.id, 'engineStartedAt', string.format('%.3f', started_at))
  end
  local known_word = tonumber(redis.call('HGET', key.server(server.id), 'engineVersion') or nil)
  if word and word >= 0 and word ~= known_word then
    set_server(server.id, 'engineVersion', string.format('%.0f', word))
    set_version(server, word)
  elseif word and word < 0 and known_word then
    unset_server(server.id, 'engineVersion')
    set_version(server, 0)
  end
  return is_restart
end
