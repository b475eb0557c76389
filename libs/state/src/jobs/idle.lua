--[[ One page of the jobs, a scan: those whose trainer was not heard of since a moment, and those that are being
deleted.
ARGV[1] JSON: {cursor, beforeMs}   cursor: string, '0' to begin
Reply: jobs     list of string
       cursor   string, '0' at the end
Errors: none. Events: none.
Flags: no-writes ]]
return function(tx, args)
  local page = redis.call('SSCAN', tx.key.jobs, args.cursor, 'COUNT', 128)
  local jobs = {}
  for _, job in ipairs(page[2]) do
    local field = redis.call('HMGET', tx.key:job(job), 'trainerSeenAtMs', 'openRoundId', 'deleting')
    if field[3] or (not field[2] and tonumber(field[1] or 0) < args.beforeMs) then table.insert(jobs, job) end
  end
  return '{"jobs":' .. Reply.list(jobs) .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
end
