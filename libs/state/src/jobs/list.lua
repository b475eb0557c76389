--[[ One page of the jobs of the pool; a scan: each one that is there all the time comes at least once. Writes nothing.
ARGV[1] JSON: {openOnly, cursor}   boolean: only those with a round that is not closed; string, '0' to begin
Reply: jobs     list of string
       cursor   string, '0' at the end
Errors: none. Events: none.
Flags: no-writes ]]
return function(tx, args)
  local PAGE = 512
  local page = redis.call('SSCAN', args.openOnly and tx.key.openJobs or tx.key.jobs, args.cursor, 'COUNT', PAGE)
  return '{"jobs":' .. Reply.list(page[2]) .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
end
