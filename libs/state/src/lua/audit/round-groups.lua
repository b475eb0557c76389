--[[ One page of a list of groups of a round against the groups. Writes nothing.
ARGV[1] JSON: {job, roundId; list: 'live' | 'accepted'; cursor: number, 0 to begin}
Reply: findings   list of {check, where, says, repaired}
       cursor     number, absent at the end
Errors: none. Facts: none.
Flags: no-writes ]]
--- @include "../includes/keys"
--- @include "../includes/reply"
--- @include "includes/findings"
local PAGE = 128
local args = cjson.decode(ARGV[1])
local is_live = args.list == 'live'
local list = is_live and key.roundGroups(args.job, args.roundId) or key.roundAccepted(args.job, args.roundId)
local page = redis.call(is_live and 'ZRANGE' or 'LRANGE', list, args.cursor, args.cursor + PAGE - 1)
for _, group_id in ipairs(page) do
  local group = redis.call('HMGET', key.group(args.job, group_id), 'state', 'roundId')
  if group[1] ~= args.list or group[2] ~= args.roundId then
    found('round-group', args.job .. '/' .. group_id, string.format('%s in round %s; its own says %s, %s', args.list,
      args.roundId, group[1] or 'not there', group[2] or '-'))
  end
end
return '{"findings":' .. encode_list(findings)
  .. (#page == PAGE and string.format(',"cursor":%.0f', args.cursor + PAGE) or '') .. '}'
