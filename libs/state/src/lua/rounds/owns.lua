--[[ Says whether a payload may still be wanted: a group names it as its prompt, it waits for its removal, or its owner, a
group or a request, is still there or in a checkpoint. Writes nothing.
ARGV[1] JSON: {job, owner, ref}   owner: groupId or requestId
Reply: owned   boolean
Errors: none. Facts: none.
Flags: no-writes ]]
--- @include "../includes/kept-refs"
local args = cjson.decode(ARGV[1])
local group_id = string.match(args.owner, '^[^/]+/([^/]+)/%d+$') or args.owner
local owned = redis.call('EXISTS', key.group(args.job, args.owner), key.request(args.owner)) > 0
  or redis.call('HEXISTS', key.promptHolders(args.job), args.ref) == 1
  or redis.call('ZSCORE', key.freedPayloads, args.ref) ~= false
  or redis.call('ZSCORE', key.awaitingPayloads, args.ref) ~= false
  or is_in_checkpoint(args.job, group_id)
return cjson.encode({ owned = owned })
