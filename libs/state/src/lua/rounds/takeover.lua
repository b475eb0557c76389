--[[ Gives the job to a new trainer; the one before is fenced.
ARGV[1] JSON: {job, takeoverId, newEpoch}   strings; the same takeoverId gets the same answer until another takes over
Reply: trainerEpoch, stamp                           strings
       stepsTrained, submittedGroups                 numbers
       round                                         RoundStatus of the round that is not closed, or absent
Errors: JOB_NOT_FOUND, FENCED (another one has taken over since). Facts: job.taken-over.
Flags: allow-oom ]]
--- @include "../includes/generation"
--- @include "../includes/round-status"
--- @include "../includes/takeovers"
--- @include "../includes/trainer"
local args = cjson.decode(ARGV[1])
local field = redis.call('HMGET', key.job(args.job), 'trainerEpoch', 'stepsTrained', 'submittedGroups', 'openRoundId')
if not field[1] then return fail('JOB_NOT_FOUND', 'There is no job ' .. args.job, 'job') end
local epoch = epoch_of_takeover(args.job, args.takeoverId)
if epoch and epoch ~= field[1] then return fail('FENCED', 'Another trainer has taken the job over', 'takeoverId') end
if not epoch then
  epoch = args.newEpoch
  begin_epoch(args.job, args.takeoverId, epoch)
  fact('job.taken-over', { job = args.job })
end
saw_trainer(args.job)
local answer = cjson.encode({
  trainerEpoch = epoch, stepsTrained = tonumber(field[2] or 0), submittedGroups = tonumber(field[3] or 0),
})
if field[4] then answer = string.sub(answer, 1, -2) .. ',"round":' .. round_status(args.job, field[4]) .. '}' end
return stamped(answer)
