--[[ One page of the jobs, a scan: those whose trainer was not heard of since a moment, and those that are being deleted.
ARGV[1] JSON: {cursor, beforeMs}   cursor: string, '0' to begin
Reply: jobs     list of string
       cursor   string, '0' at the end
Errors: none. Facts: none.
Flags: no-writes ]]
--- @include "../includes/reply"
--- @include "../includes/keys"
local args = cjson.decode(ARGV[1])
local page = redis.call('SSCAN', key.jobs, args.cursor, 'COUNT', 128)
local jobs = {}
for _, job in ipairs(page[2]) do
  local field = redis.call('HMGET', key.job(job), 'trainerSeenAtMs', 'openRoundId', 'deleting')
  if field[3] or (not field[2] and tonumber(field[1] or 0) < args.beforeMs) then table.insert(jobs, job) end
end
return '{"jobs":' .. encode_list(jobs) .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
