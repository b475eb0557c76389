--[[ Looks again at one page of the groups on their way to the long-tail queue: what workers have of them is told again,
what void holders had ends here.
A page ends with the group that makes it 32 requests.
ARGV[1] JSON: {cursor}   number, 0 to begin
Reply: aborts          list of {requestId, attempt, workerId, workerEpoch}
       cursor          number where the next page starts; absent at the end
Errors: none. Facts: longtail.requeued.
Flags: allow-oom ]]
--- @include "../includes/aborts"
local PAGE = 32
local args = cjson.decode(ARGV[1])
local aborts, touched, seen, remaining = {}, 0, 0, 0
local page = redis.call('ZRANGE', key.leavingGroups, args.cursor, args.cursor + PAGE - 1)
for _, name in ipairs(page) do
  if touched >= PAGE then break end
  seen = seen + 1
  local job, group_id = string.match(name, '^([^/]+)/(.+)$')
  local group = load_group(job, group_id)
  local round = load_round(job, group.roundId)
  touched = touched + group.launched
  if not honour_abort(round, group, aborts) then
    end_live_requests(group, aborts, function(request) cut_request(round, group, request, nil, 0) end)
  end
  if group.state == 'leaving' then remaining = remaining + 1 end
end
local cursor = args.cursor + remaining
local more = seen > 0 and cursor < redis.call('ZCARD', key.leavingGroups)
return '{"aborts":' .. encode_list(aborts) .. (more and ',"cursor":' .. integer(cursor) or '')
  .. '}'
