--[[ Forgets one page of sessions; a scan: each one that is there all the time is met. One with leases is bound anew by
its next lease, and forgotten with its last.
ARGV[1] JSON: {cursor}: string, '0' to begin
Reply: cleared     number
       cursor      string, '0' at the end
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local page = redis.call('HSCAN', tx.key.sessions, args.cursor, 'COUNT', PAGE)
  local cleared = 0
  for index = 1, #page[2], 2 do
    local session_id, binding = page[2][index], BindingRecord.unpack(page[2][index + 1])
    if binding.leases == 0 then
      Sessions.forget(tx, session_id, binding)
      cleared = cleared + 1
    elseif binding.epoch ~= BindingRecord.NO_EPOCH then
      Sessions.count(tx, binding.serverId, binding.epoch, -1)
      binding.epoch, binding.dpRank, binding.finished = BindingRecord.NO_EPOCH, nil, true
      Sessions.save(tx, session_id, binding)
      cleared = cleared + 1
    end
  end
  Leases.save(tx)
  return '{"cleared":' .. cleared .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
end
