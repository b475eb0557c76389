--[[ The jobs of the pool. Writes nothing.
ARGV[1] JSON: {openOnly}   boolean: only those with a round that is not closed
Reply: jobs   list of string, sorted
Errors: none. Facts: none.
Flags: no-writes ]]
--- @include "../includes/keys"
--- @include "../includes/reply"
local args = cjson.decode(ARGV[1])
local jobs = redis.call('SMEMBERS', args.openOnly and key.openJobs or key.jobs)
table.sort(jobs)
return '{"jobs":' .. encode_list(jobs) .. '}'
