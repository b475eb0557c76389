-- Ends of samples that have finished.
local Completes = {}

-- Ends one sample, see complete-many.lua. Returns the reply, JSON, and true when nothing of the group and its round has
-- changed but counts in the tables of `known`.
local function finish(tx, args, known)
  local request, group, round = Attempts.load(tx, args, known)
  if not request then return group end

  local aborts = {}
  request.run = args.run

  local function answer(state)
    return cjson.encode({
      state = state, groupAccepted = group.state == 'accepted', job = request.job, roundId = group.roundId,
      roundCompleted = round ~= nil and not Round.takes_results(round), madeRoom = tx.jobs_readmitted,
      moveTimes = request.moveTimes,
    }):sub(1, -2) .. ',"aborts":' .. Reply.list(aborts) .. '}'
  end

  if not Request.HELD[request.state] then
    if request.state == 'finished' or request.state == 'unfinished' then return answer(request.state) end
    if request.state == 'pending' then return Attempts.superseded() end
    return answer('dropped')
  end
  if Attempts.is_ending(group, request) then
    Attempts.end_unwanted(tx, round, group, request, args.segment, args.tokens)
    return answer('dropped')
  end
  if not Round.takes_results(round) and round.discards then
    Longtail.cut_request(tx, round, group, request, args.segment, args.tokens)
    return answer('unfinished')
  end
  local changed = args.segment and args.stamp and Generation.stamp_error(tx, args.stamp)
  if changed then return changed end
  if args.isMissing then
    local message = 'segment.ref: the payload is not in the store: store it again and name that'
    return Reply.fail('PAYLOAD_NOT_FOUND', message, 'segment.ref')
  end

  KeptTokens.keep(tx, request, group, args.segment, args.tokens, true)
  local event = AttemptEnds.fields(tx, request, group)
  event.tokens, event.finishReason = request.tokens, args.finishReason
  local reasons = { 'finishReason', args.finishReason }
  if args.engineFinishReason then reasons[3], reasons[4] = 'engineFinishReason', args.engineFinishReason end
  Requests.move(tx, request, group, 'finished', reasons)
  Round.add(tx, round, 'requestsDone', 1)
  Dispatch.follow_probe(tx, group)
  Ledger.count_ended(tx, round, request.tokens, args.finishReason == 'length')
  Events.add(tx, 'request.finished', event)
  if Group.is_whole(group) then
    Longtail.place_whole(tx, round, group, aborts)
  elseif group.live == 0 and GroupEnds.is_settling(round, group) then
    GroupEnds.settle_group(tx, round, group)
  else
    return answer('finished'), true
  end
  return answer('finished')
end

-- Ends one sample, also when that raises an error again and again. Returns the reply, JSON. `known`: the groups and
-- rounds of samples that this call has ended before, see Attempts.load; it is emptied when they may be out of date.
function Completes.complete(tx, args, known)
  tx.was_held = nil
  local keeps_known
  local answer, message = BrokenEnds.end_in_any_case(tx, args, function()
    local reply
    reply, keeps_known = finish(tx, args, known)
    return reply
  end)
  if not keeps_known then
    for name in pairs(known) do known[name] = nil end
  end
  return answer or Reply.fail('INTERNAL', message)
end

return Completes
