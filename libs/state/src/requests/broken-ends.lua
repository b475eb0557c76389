-- Ends of attempts that raise an error, because of a defect here or of malformed records in Redis. Such an end is
-- counted and may be repeated. After four such ends, or when no repeat can come, the request counts as lost, so that
-- its round can continue.
local BrokenEnds = {}

local MAX_BROKEN_ENDS, MESSAGE_LENGTH = 4, 300

local function text_of(cause) return type(cause) == 'table' and cause.err or tostring(cause) end

-- Counts the broken end in the round of the group, or in the open round when the group names none.
local function note_broken(tx, id, cause, is_last)
  local job, group_id = Request.parse_id(id)
  local is_read, _, round_id = pcall(Group.read_state, tx, job, group_id)
  local round = Round.load(tx, job, is_read and round_id or Job.read_open_round(tx, job) or '')
  if not round then return end
  Round.add_returned(tx, round, 'internal')
  local why = { reason = 'internal', message = string.sub(text_of(cause), 1, MESSAGE_LENGTH) }
  if is_last then Attempts.note_failure(tx, round, { id = id }, why) end
end

-- Deletes a group that cannot be read either, and its requests without a holder. The round continues without the group.
local function lose_unreadable_group(tx, id)
  local job, group_id = Request.parse_id(id)
  Group.delete(tx, job, group_id)
  Recovery.lose_missing_group(tx, job, group_id)
end

-- Counts a broken end and gives the request up if no repeat can help. `held`: key of the index of the holder's
-- attempts. True when the request has ended; otherwise the call is to be repeated.
function BrokenEnds.give_up(tx, id, held, cause)
  local count = Request.count_broken_end(tx, id)
  -- Redis takes no writes now: nothing was changed, and a repeat may succeed.
  if type(count) == 'table' and not string.match(count.err, '^WRONGTYPE') then return false end
  local is_last = type(count) == 'table' or count > MAX_BROKEN_ENDS or redis.call('SISMEMBER', held, id) == 0
  pcall(note_broken, tx, id, cause, is_last)
  if not is_last then return false end
  Request.delete(tx, id)
  local is_lost = pcall(Recovery.lose_missing, tx, id, held)
  if not is_lost then pcall(lose_unreadable_group, tx, id) end
  return true
end

local function is_held(tx, args, held)
  if not WorkerFence.is_current(tx, args.workerId, args.workerEpoch) or redis.call('SISMEMBER', held,
    args.requestId) == 0 then
    return false
  end
  local attempt = Request.try_read_attempt(tx, args.requestId)
  return type(attempt) == 'table' or attempt == args.attempt
end

-- Runs `ending`, which ends an attempt and returns the reply. Returns the reply; or nil and the message of the error,
-- when `ending` raised an error and a repeat may help.
function BrokenEnds.end_in_any_case(tx, args, ending)
  local is_well, answer = pcall(ending)
  if is_well then return answer end
  local held = tx.key:workerAttempts(args.workerId, args.workerEpoch)
  local may_give_up = tx.was_held
  if may_give_up == nil then may_give_up = is_held(tx, args, held) end
  if not may_give_up or not BrokenEnds.give_up(tx, args.requestId, held, answer) then
    return nil, text_of(answer)
  end
  return Reply.object({ state = 'dropped', groupAccepted = false, roundCompleted = false, aborts = {},
    madeRoom = tx.jobs_readmitted })
end

return BrokenEnds
