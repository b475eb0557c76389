--[[ Removes the trajectory of a session. Safe to repeat.
ARGV[1] JSON: {id, tokenId}   strings; tokenId: only a session of this token; absent: of any token
Reply: deleted   boolean
Flags: allow-oom ]]
return function(tx, args)
  local about = redis.call('HGET', tx.key:trajectory(args.id), 'about')
  if about and args.tokenId and cjson.decode(about).tokenId ~= args.tokenId then
    return Reply.object({ deleted = false })
  end
  return Reply.object({ deleted = Trajectories.remove(tx, args.id) })
end
