--[[ Ends a change of settings after every server was scored by them: a prepared policy takes over.
ARGV[1] JSON: {revision}: revision of the settings by which all servers were scored
Reply: RawSettings; nothing is changed when the settings have another revision now
Flags: allow-oom ]]
return function(tx, args)
  local revision = args.revision
  if Settings.number(tx, 'version') == revision then
    local policy = Settings.get(tx, 'nextPolicy')
    if policy then
      redis.call('UNLINK', tx.key.eligible)
      if redis.call('EXISTS', tx.key.nextEligible) == 1 then redis.call('RENAME', tx.key.nextEligible,
        tx.key.eligible) end
      redis.call('HSET', tx.key.settings, 'policy', policy)
      redis.call('HDEL', tx.key.settings, 'nextPolicy')
      if policy ~= 'consistent-hash' then redis.call('UNLINK', tx.key.ring) end
    end
    redis.call('HSET', tx.key.settings, 'scoredVersion', Format.integer(revision))
  end
  return Settings.json(tx)
end
