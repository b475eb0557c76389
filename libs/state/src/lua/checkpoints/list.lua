--[[ The complete checkpoints of a job, oldest first. Writes nothing.
ARGV[1] JSON: {job}
Reply: job
       checkpoints   list of {tag, step, groups, requests, savedAtMs}
       saving, restoring   tag of one that is under way, or absent
Errors: JOB_NOT_FOUND. Facts: none.
Flags: no-writes ]]
--- @include "../includes/checkpoints"
local args = cjson.decode(ARGV[1])
local field = redis.call('HMGET', key.job(args.job), 'saving', 'restoring', 'trainerEpoch')
if not field[3] then return fail('JOB_NOT_FOUND', 'There is no job ' .. args.job, 'job') end
local checkpoints = {}
for _, tag in ipairs(redis.call('ZRANGE', key.checkpoints(args.job), 0, -1)) do
  table.insert(checkpoints, checkpoint_json(args.job, redis.call('ZSCORE', key.checkpoints(args.job), tag)))
end
local function tag_of(number) return number and redis.call('HGET', key.checkpoint(args.job, number), 'tag') or nil end
return '{"checkpoints":' .. encode_list(checkpoints) .. ','
  .. string.sub(cjson.encode({ job = args.job, saving = tag_of(field[1]), restoring = tag_of(field[2]) }), 2)
