--- @include "keys"
-- Facts about requests, rounds and the long-tail queue go to a capped outbox in the script that makes them true. The
-- sequence has no gaps, so a reader sees what the cap has cut off.
local FACTS_KEPT = 10000
local function fact(type, body)
  body.sequence = redis.call('HINCRBY', key.meta, 'factSequence', 1)
  redis.call('XADD', key.facts, 'MAXLEN', '~', FACTS_KEPT, '*', 'type', type, 'json', cjson.encode(body))
end
