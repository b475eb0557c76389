-- Events about requests, rounds and the long-tail queue go to a capped outbox in the script that makes them true. The
-- sequence has no gaps, so a reader sees what the cap has cut off.
local Events = {}

local EVENTS_KEPT = 10000
function Events.add(tx, type, body)
  body.sequence = redis.call('HINCRBY', tx.key.meta, 'eventSequence', 1)
  redis.call('XADD', tx.key.events, 'MAXLEN', '~', EVENTS_KEPT, '*', 'type', type, 'json', cjson.encode(body))
end

return Events
