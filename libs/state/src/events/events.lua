-- Events about requests, rounds and the long-tail queue: the script that makes a change adds its event to a capped
-- outbox. The sequence has no gaps, so a reader sees how many events the cap has removed.
local Events = {}

local EVENTS_KEPT = 10000
function Events.add(tx, type, body)
  body.sequence = redis.call('HINCRBY', tx.key.meta, 'eventSequence', 1)
  redis.call('XADD', tx.key.events, 'MAXLEN', '~', EVENTS_KEPT, '*', 'type', type, 'json', cjson.encode(body))
end

return Events
