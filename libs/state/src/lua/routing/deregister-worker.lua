--[[ Gives a worker epoch up; what it still holds is returned by the sweepers.
ARGV[1] JSON: {workerId, workerEpoch}
Reply: deregistered   false when the epoch was void already
Errors: WORKER_NOT_FOUND. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "includes/workers"
local args = cjson.decode(ARGV[1])
if not worker_is_current(args.workerId, args.workerEpoch) then
  local code, message, field = void_worker(args.workerId)
  return code == 'FENCED' and '{"deregistered":false}' or fail(code, message, field)
end
void_worker_epoch(args.workerId, args.workerEpoch)
return '{"deregistered":true}'
