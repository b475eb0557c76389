--[[ Whether a payload may still be needed: a group names it as its prompt, it waits for its removal, its owner (a group
or a request) is still there or in a snapshot, or it is a turn of a trajectory. Writes nothing.
ARGV[1] JSON: {job, owner, ref}   owner: groupId, requestId, or trajectory/<id>
Reply: owned   boolean
Flags: no-writes ]]
return function(tx, args)
  local group_id = string.match(args.owner, '^[^/]+/([^/]+)/%d+$') or args.owner
  local session, turn = string.match(args.owner, '^trajectory/(%x+)$'), string.match(args.ref, '~(%d+)%.[^~]+$')
  local is_turn = session and turn and redis.call('HGET', tx.key:trajectory(session), 'ref:' .. turn) == args.ref
  local owned = is_turn or Group.exists(tx, args.job, args.owner) or Request.exists(tx, args.owner)
    or redis.call('HEXISTS', tx.key:promptHolders(args.job), args.ref) == 1
    or redis.call('ZSCORE', tx.key.freedPayloads, args.ref) ~= false
    or redis.call('ZSCORE', tx.key.awaitingPayloads, args.ref) ~= false
    or KeptRefs.is_in_snapshot(tx, args.job, group_id)
  return Reply.object({ owned = owned })
end
