--[[ Ends a change of settings after every server was scored by them: a prepared policy takes over.
ARGV[1] JSON: {version}: of the settings all servers were scored by
Reply: as routing/pool-settings; nothing is changed when the settings have changed since
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "includes/pool-settings"
local version = cjson.decode(ARGV[1]).version
if number_setting('version') == version then
  local policy = setting('nextPolicy')
  if policy then
    redis.call('UNLINK', key.eligible)
    if redis.call('EXISTS', key.nextEligible) == 1 then redis.call('RENAME', key.nextEligible, key.eligible) end
    redis.call('HSET', key.settings, 'policy', policy)
    redis.call('HDEL', key.settings, 'nextPolicy')
    if policy ~= 'consistent-hash' then redis.call('UNLINK', key.ring) end
  end
  redis.call('HSET', key.settings, 'scoredVersion', string.format('%.0f', version))
end
return settings_reply()
