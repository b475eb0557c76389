--[[ Forgets one page of sessions; a scan (Pages.scan). A session with leases is bound again by its next lease, and
forgotten with its last lease.
ARGV[1] JSON: {cursor}   string
Reply: cleared     number
       cursor      string
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local page, cursor = Pages.scan('HSCAN', tx.key.sessions, args.cursor, PAGE)
  local cleared = 0
  for index = 1, #page, 2 do
    local session_id, binding = page[index], BindingRecord.unpack(page[index + 1])
    if binding.leases == 0 then
      Sessions.forget(tx, session_id, binding)
      cleared = cleared + 1
    elseif binding.epoch ~= BindingRecord.NO_EPOCH then
      Sessions.count(tx, binding.serverId, binding.epoch, -1)
      Residency.drop(tx, session_id, binding)
      binding.epoch, binding.dpRank, binding.finished = BindingRecord.NO_EPOCH, nil, true
      Sessions.save(tx, session_id, binding)
      cleared = cleared + 1
    end
  end
  Leases.save(tx)
  return Reply.object({ cleared = cleared, cursor = cursor })
end
