--[[ The attempt runs on a server; with a segment, its tokens so far are safe.
ARGV[1] JSON:
  requestId, attempt, workerId, workerEpoch
  segment   JSON of the segment as a string, or absent; one without more tokens than the last is an older message
  tokens    number of tokens of the segment
  serverId  string or absent: where it runs
  generatedMs   number or absent: how long the attempt has generated
Reply: action   'continue' | 'abort' (cut or dropped: end the attempt with request.fail)
Errors: FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/attempts"
--- @include "../includes/generation-time"
local args = cjson.decode(ARGV[1])
local request, group, round = load_attempt(args)
if not request then return group end
if not HELD[request.state] then
  if request.state == 'pending' then return superseded() end
  return '{"action":"abort"}'
end

note_time(request, group, optional(args.generatedMs))
local segment = optional(args.segment)
redis.call('HSET', key.request(request.id), 'started', 1)
if optional(args.serverId) then redis.call('HSET', key.request(request.id), 'serverId', args.serverId) end
if segment and (not request.checkpoint or args.tokens > request.checkpointTokens) then
  redis.call('HSET', key.request(request.id), 'checkpoint', segment, 'checkpointTokens', args.tokens)
  request.checkpoint, segment = segment, request.checkpoint
end
free_unused(request, segment)
if request.state == 'claimed' then move_request(request, group, 'running') end
if request.state == 'cutting' or not takes_results(round) then return '{"action":"abort"}' end
return '{"action":"continue"}'
