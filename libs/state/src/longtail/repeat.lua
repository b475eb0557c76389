--[[ Looks again at one page of the groups on their way to the long-tail queue: what workers have of them is told again,
what expired holders had ends here.
A page ends with the group that makes it 32 requests.
ARGV[1] JSON: {cursor}   number, 0 to begin
Reply: aborts          list of {requestId, attempt, workerId, workerEpoch}
       cursor          number where the next page starts; absent at the end
Errors: none. Events: longtail.requeued.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 32
  local aborts, touched, seen, remaining = {}, 0, 0, 0
  local page = redis.call('ZRANGE', tx.key.leavingGroups, args.cursor, args.cursor + PAGE - 1)
  for _, name in ipairs(page) do
    if touched >= PAGE then break end
    seen = seen + 1
    local job, group_id = string.match(name, '^([^/]+)/(.+)$')
    local group = Rounds.load_group(tx, job, group_id)
    local round, can_go_on
    touched = touched + (group and group.launched or 1)
    if group then
      round, can_go_on = Recovery.round_of(tx, group)
    else
      redis.call('ZREM', tx.key.leavingGroups, name)
      Counts.add_settling(tx, job, -1)
      Recovery.lose_missing_group(tx, job, group_id)
    end
    if can_go_on and not Aborts.apply(tx, round, group, aborts) then
      Cancellation.stop_live(tx, round, group, aborts, function(request)
        Longtail.cut_request(tx, round, group, request, nil, 0)
      end)
    end
    if group and group.state == 'leaving' then remaining = remaining + 1 end
  end
  local cursor = args.cursor + remaining
  local more = seen > 0 and cursor < redis.call('ZCARD', tx.key.leavingGroups)
  return '{"aborts":' .. Reply.list(aborts) .. (more and ',"cursor":' .. Format.integer(cursor) or '')
    .. '}'
end
