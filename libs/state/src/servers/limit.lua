--[[ Sets how many leases servers may have now, below their maxInflight, as adaptive concurrency has decided.
ARGV[1] JSON:
  limits           list of {serverId, epoch, from, to}, at most 128; skipped when the epoch or `from` is not current
Reply: {limited: list of serverId} and WaiterAnswers
Flags: allow-oom ]]
return function(tx, args)
  local limited = {}
  for _, change in ipairs(args.limits) do
    local server = Servers.get(tx, change.serverId)
    if server and server.epoch == change.epoch and (server.limit or server.maxInflight) == change.from then
      server.limit = change.to < server.maxInflight and change.to or nil
      ServerHash.change(tx, server.id, { limit = server.limit or false })
      Servers.rescore(tx, server)
      table.insert(limited, server.id)
    end
  end
  return Waiters.reply(tx, limited, { limited = limited })
end
