--[[ Cuts one page of the groups a completed round did not accept. What nobody has goes to `unfinished` at once, what a
worker has becomes `cutting` and is returned for an abort, again each time until it is confirmed or its holder is void.
Of a round that is open, goes on giving free places to groups that are held.
A page ends with the group that makes it 32 requests.
ARGV[1] JSON: {job, roundId, cursor}   cursor: number, 0 to begin
Reply: aborts          list of {requestId, attempt, workerId, workerEpoch}
       cursor          number where the next page starts; absent at the end
       settled         true when nothing is left to cut
Errors: none. Facts: longtail.requeued, round.settled.
Flags: allow-oom ]]
--- @include "../includes/attempts"
local PAGE = 32
local args = cjson.decode(ARGV[1])
local round = load_round(args.job, args.roundId)
if not round then return '{"aborts":[],"settled":true}' end
if round.state == 'opening' then return '{"aborts":[],"settled":false}' end
if round.state == 'open' then
  -- Places that came free for more groups than one script accepts.
  redis.call('SREM', key.sweeps, sweep_name(round))
  review_round(round)
  local more = redis.call('SISMEMBER', key.sweeps, sweep_name(round)) == 1 and takes_results(round)
  return '{"aborts":[]' .. (more and ',"cursor":0' or '') .. ',"settled":false}'
end

local aborts, touched, remaining = {}, 0, 0
local page = redis.call('ZRANGE', key.roundGroups(args.job, args.roundId), args.cursor, args.cursor + PAGE - 1)
local seen = 0
for _, group_id in ipairs(page) do
  if touched >= PAGE then break end
  seen = seen + 1
  local group = load_group(args.job, group_id)
  touched = touched + (group and group.launched or 1)
  if not group then
    lose_live_group(round, group_id)
  elseif not honour_abort(round, group, aborts) then
    local missing = end_live_requests(group, aborts, function(request) cut_request(round, group, request, nil, 0) end)
    if missing then
      lose_missing(missing, 'held', function() end)
      group = load_group(args.job, group_id)
    end
    -- Finished, and held without a place until the round was completed.
    if group.state == 'live' and group.live == 0 then settle_group(round, group) end
  end
  if group and group.state == 'live' then remaining = remaining + 1 end
end
local cursor = args.cursor + remaining
local more = cursor < redis.call('ZCARD', key.roundGroups(args.job, args.roundId)) and seen > 0
return '{"aborts":' .. encode_list(aborts) .. (more and ',"cursor":' .. integer(cursor) or '')
  .. ',"settled":' .. tostring(round.settled) .. '}'
