--[[ The jobs of the pool. Writes nothing.
ARGV[1] JSON: {openOnly}   boolean: only those with a round that is not closed
Reply: jobs   list of string, sorted
Errors: none. Facts: none.
Flags: no-writes ]]
--- @include "../includes/keys"
--- @include "../includes/reply"
local args = cjson.decode(ARGV[1])
local jobs = {}
for _, job in ipairs(redis.call('SMEMBERS', key.jobs)) do
  if not args.openOnly or redis.call('HEXISTS', key.job(job), 'openRoundId') == 1 then table.insert(jobs, job) end
end
table.sort(jobs)
return '{"jobs":' .. encode_list(jobs) .. '}'
