-- Partial saves of running attempts.
local Saves = {}

-- Most pieces of a partial save: the next save has all tokens again.
local MAX_PIECES = 1000

-- Takes a segment with the tokens of the attempt after its first `after` tokens. Returns the segments that are not
-- needed (any more): those before, or this one, if it is an older message or does not continue what is stored.
local function take(tx, request, segment, tokens, after)
  if request.savedSegment and after + tokens <= request.savedTokens then return { segment } end
  if after == 0 then
    local before = Request.read_saved(tx, request)
    Request.set_saved(tx, request, segment, tokens)
    return before
  end
  if not request.savedSegment or after ~= request.savedTokens or request.pieces == MAX_PIECES then
    return { segment }
  end
  Request.add_piece(tx, request, segment, tokens)
  return {}
end

-- Takes one report of a running attempt, see save.lua. Returns the reply, JSON. `known`: owners of requests, see
-- Attempts.load.
function Saves.save(tx, args, known)
  local request, group, round = Attempts.load(tx, args, known)
  if not request then return group end
  if not Request.HELD[request.state] then
    if request.state == 'pending' then return Attempts.superseded() end
    return '{"action":"abort","savedTokens":0}'
  end

  GenerationTime.note_time(tx, request, group, args.generatedMs)
  Moves.note_times(tx, request, args.run)
  Request.set_running(tx, request, args.serverId, args.waiting)
  if args.segment then
    KeptTokens.free_unused(tx, request, take(tx, request, args.segment, args.tokens, args.savedTokens or 0))
  end
  if request.state == 'claimed' then Requests.move(tx, request, group, 'running') end
  local stops = request.state == 'cutting' or not Round.takes_results(round)
  return string.format('{"action":"%s","savedTokens":%.0f%s}', stops and 'abort' or 'continue',
    request.pieces < MAX_PIECES and request.savedTokens or 0,
    request.moveTimes and ',"moveTimes":' .. cjson.encode(request.moveTimes) or '')
end

return Saves
