-- The long-tail queue of a job: groups that wait for a later round, and groups on their way there.
local LongtailQueue = {}

local FINISHED_FIRST = 2 ^ 40 -- finished groups go before all others
LongtailQueue.STEP_OF_PIN = 2 ^ 32 -- a pin is a step and, within it, a place in the queue

-- Score of a group with its present samples; nil for a group that was never in the queue.
function LongtailQueue.score(group)
  local place = group.longtailSequence
  return place and Format.integer(Group.is_whole(group) and place - FINISHED_FIRST or place)
end

-- Puts a group at its place. `pin_step`: step from which the group must be taken, or nil.
function LongtailQueue.add(tx, group, pin_step)
  redis.call('ZADD', tx.key:longtail(group.job), LongtailQueue.score(group), group.groupId)
  local pin = pin_step and Format.integer(pin_step * LongtailQueue.STEP_OF_PIN + group.longtailSequence) or false
  Group.set(tx, group, { pin = pin }) -- a snapshot copies the pin
  if pin then redis.call('ZADD', tx.key:pins(group.job), pin, group.groupId) end
end

-- Moves a group that has become whole in the queue to the front.
function LongtailQueue.move_to_front(tx, group)
  redis.call('ZREM', tx.key:pins(group.job), group.groupId)
  Group.set(tx, group, { pin = false })
  redis.call('ZINCRBY', tx.key:longtail(group.job), Format.integer(-FINISHED_FIRST), group.groupId)
end

function LongtailQueue.remove(tx, job, group_id)
  redis.call('ZREM', tx.key:longtail(job), group_id)
  redis.call('ZREM', tx.key:pins(job), group_id)
end

-- Notes that the group is not on its way to the queue any more.
function LongtailQueue.forget_leaving(tx, round, group)
  redis.call('ZREM', tx.key.leavingGroups, Group.format_name(group))
  Round.add(tx, round, 'leavingGroups', -1)
end

return LongtailQueue
