--[[ Looks again at one page of leases whose holders were told to transfer them: what has moved or ended, or has another
holder or target by now, is done; a holder that has had its time is told no more, and its call goes on where it is.
ARGV[1] JSON: {cursor, deadlineMs}   string, '0' to begin; number
Reply: leases    list of {planId, leaseId, workerId, workerEpoch, targetServerId, targetEpoch?}
       expired   number of moves given up
       cursor    string, '0' at the end
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/moves"
--- @include "../includes/clock"
--- @include "../includes/reply"
--- @include "../includes/worker-fence"
local PAGE = 128
local args = cjson.decode(ARGV[1])
local leases, expired = {}, 0
local page = redis.call('HSCAN', key.movingLeases, args.cursor, 'COUNT', PAGE)
for position = 1, #page[2], 2 do
  local lease_id = page[2][position]
  local plan_id, target, epoch, started_at = string.match(page[2][position + 1], '^([^|]*)|([^|]*)|(%w*)|(%d+)$')
  local seq, acquire_id = string.match(lease_id, '^(%d+)%.(.+)$')
  local server_id, worker_id, worker_epoch = string.match(redis.call('HGET', key.leases, acquire_id) or '',
    '^' .. seq .. '|([^|]*)|%w+|([^|]*)|(%w+)|')
  local is_held = server_id and server_id ~= target and worker_is_current(worker_id, worker_epoch)
    and (epoch == '' or redis.call('HGET', key.server(target), 'epoch') == epoch)
  local is_overdue = now_ms() - tonumber(started_at) > args.deadlineMs
  if is_held and not is_overdue then
    table.insert(leases, { planId = plan_id, leaseId = lease_id, workerId = worker_id, workerEpoch = worker_epoch,
      targetServerId = target, targetEpoch = epoch ~= '' and epoch or nil })
  else
    redis.call('HDEL', key.movingLeases, lease_id)
    if is_held then
      note_move(plan_id, lease_id, 'expired')
      expired = expired + 1
    end
  end
end
return '{"leases":' .. encode_list(leases) .. ',"expired":' .. expired .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
