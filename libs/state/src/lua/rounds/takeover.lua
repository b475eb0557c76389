--[[ Gives the job to a new trainer; the one before is fenced.
ARGV[1] JSON: {job, takeoverId, newEpoch}   strings; the same takeoverId gets the same answer until another takes over
Reply: trainerEpoch, stamp                           strings
       stepsTrained, submittedGroups                 numbers
       round                                         RoundStatus of the round that is not closed, or absent
Errors: JOB_NOT_FOUND, FENCED (another one has taken over since). Facts: job.taken-over.
Flags: allow-oom ]]
--- @include "../includes/generation"
--- @include "../includes/round-status"
--- @include "../includes/trainer"
local REMEMBERED = 16
local args = cjson.decode(ARGV[1])
local hash = key.job(args.job)
local field = redis.call('HMGET', hash, 'trainerEpoch', 'takeovers', 'stepsTrained', 'submittedGroups', 'openRoundId')
if not field[1] then return fail('JOB_NOT_FOUND', 'There is no job ' .. args.job, 'job') end
local epoch = field[1]
local takeovers = cjson.decode(field[2] or '[]')
local repeated = false
for _, takeover in ipairs(takeovers) do
  if takeover.id == args.takeoverId then
    if takeover.epoch ~= epoch then return fail('FENCED', 'Another trainer has taken the job over', 'takeoverId') end
    repeated = true
  end
end
if not repeated then
  epoch = args.newEpoch
  table.insert(takeovers, { id = args.takeoverId, epoch = epoch })
  if #takeovers > REMEMBERED then table.remove(takeovers, 1) end
  redis.call('HSET', hash, 'trainerEpoch', epoch, 'takeovers', cjson.encode(takeovers))
  fact('job.taken-over', { job = args.job })
end
saw_trainer(args.job)
local answer = cjson.encode({
  trainerEpoch = epoch, stepsTrained = tonumber(field[3] or 0), submittedGroups = tonumber(field[4] or 0),
})
if field[5] then answer = string.sub(answer, 1, -2) .. ',"round":' .. round_status(args.job, field[5]) .. '}' end
return stamped(answer)
