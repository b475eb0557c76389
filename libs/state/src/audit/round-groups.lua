--[[ One page of a list of groups of a round against the groups. Writes nothing.
ARGV[1] JSON: {job, roundId; list: 'live' | 'accepted'; cursor: number, 0 to begin}
Reply: findings   list of {check, where, says, repaired}
       cursor     number, absent at the end
Errors: none. Facts: none.
Flags: no-writes ]]
return function(tx, args)
  local PAGE = 128
  local is_live = args.list == 'live'
  local list = is_live and tx.key:roundGroups(args.job, args.roundId) or tx.key:roundAccepted(args.job, args.roundId)
  local page = redis.call(is_live and 'ZRANGE' or 'LRANGE', list, args.cursor, args.cursor + PAGE - 1)
  for _, group_id in ipairs(page) do
    local group = redis.call('HMGET', tx.key:group(args.job, group_id), 'state', 'roundId')
    if group[1] ~= args.list or group[2] ~= args.roundId then
      Findings.add(tx, 'round-group', args.job .. '/' .. group_id, string.format('%s in round %s; its own says %s, %s',
        args.list,
        args.roundId, group[1] or 'not there', group[2] or '-'))
    end
  end
  return '{"findings":' .. Reply.list(tx.findings)
    .. (#page == PAGE and string.format(',"cursor":%.0f', args.cursor + PAGE) or '') .. '}'
end
