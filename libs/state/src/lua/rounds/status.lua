--[[ The state of one round of a job.
ARGV[1] JSON:
  job            string
  roundId        string or absent: the round that is not closed, or the last one
  trainerEpoch   string or absent: keeps the round from being orphaned
  stamp          of the trainer, or absent
Reply: RoundStatus of the protocol, with a stamp
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/generation"
--- @include "../includes/round-status"
--- @include "../includes/trainer"
local args = cjson.decode(ARGV[1])
local epoch = optional(args.trainerEpoch)
local refused = stamp_error(optional(args.stamp)) or (epoch and trainer_error(args.job, epoch))
if refused then return refused end
if epoch then saw_trainer(args.job) end
local last = redis.call('HGET', key.job(args.job), 'lastRoundId')
if not last then return fail('JOB_NOT_FOUND', 'There is no job ' .. args.job, 'job') end
local round_id = optional(args.roundId) or last
local status = round_status(args.job, round_id)
if not status then return fail('ROUND_NOT_FOUND', 'There is no round ' .. round_id, 'roundId') end
return stamped(status)
