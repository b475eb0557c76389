--[[ Looks again at one page of requests whose holders were told to stop them for a move and have not confirmed it: those of
void holders are pending again; a holder that has had its time keeps its attempt, which goes on where it is.
ARGV[1] JSON: {cursor, deadlineMs}   numbers; cursor 0 to begin
Reply: aborts          list of {requestId, attempt, workerId, workerEpoch}
       expired         number of moves given up
       pending         number of requests that may be claimed again
       cursor          number where the next page starts; absent at the end
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/attempts"
local PAGE = 32
local args = cjson.decode(ARGV[1])
local now = now_ms()
local aborts, expired, pending = {}, 0, 0
local page = redis.call('ZRANGE', key.movingRequests, args.cursor, args.cursor + PAGE - 1, 'WITHSCORES')
local before = redis.call('ZCARD', key.movingRequests)
for position = 1, #page, 2 do
  local request = load_request(page[position])
  if not request or request.state ~= 'cutting' then
    redis.call('ZREM', key.movingRequests, page[position])
  elseif not worker_is_current(request.workerId, request.workerEpoch) then
    if return_attempt(request) then pending = pending + 1 end
  elseif now - tonumber(page[position + 1]) <= args.deadlineMs then
    stop_held(request, {}, aborts)
  else
    local group = load_group(request.job, request.groupId)
    local round = group and load_round(request.job, group.roundId)
    -- A cut or an abort that came meanwhile has its own deadline.
    if round and group.state == 'live' and takes_results(round) then
      move_request(request, group, 'running')
      expired = expired + 1
    end
  end
end
local left = before - redis.call('ZCARD', key.movingRequests)
local cursor = args.cursor + #page / 2 - left
local more = #page > 0 and cursor < redis.call('ZCARD', key.movingRequests)
return '{"aborts":' .. encode_list(aborts) .. ',"expired":' .. expired .. ',"pending":' .. pending
  .. (more and ',"cursor":' .. integer(cursor) or '') .. '}'
