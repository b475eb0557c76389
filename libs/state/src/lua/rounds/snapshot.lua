--[[ What the plan of the next round is made from. Writes nothing.
ARGV[1] JSON: {job}
Reply: stepsTrained, longtailGroups, settlingGroups   numbers; all 0 for a job that is not there
       openRoundId                                    string, absent when no round is open
Errors: none. Facts: none. ]]
--- @include "../includes/keys"
local args = cjson.decode(ARGV[1])
local field = redis.call('HMGET', key.job(args.job), 'stepsTrained', 'settlingGroups', 'openRoundId')
return cjson.encode({
  stepsTrained = tonumber(field[1] or 0),
  settlingGroups = tonumber(field[2] or 0),
  longtailGroups = redis.call('ZCARD', key.longtail(args.job)),
  openRoundId = field[3] or nil,
})
