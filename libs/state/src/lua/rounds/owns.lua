--[[ Says whether the owner of a payload, a group or a request, is still there, or in a checkpoint. Writes nothing.
ARGV[1] JSON: {job, owner}   owner: groupId or requestId
Reply: owned   boolean
Errors: none. Facts: none.
Flags: no-writes ]]
--- @include "../includes/kept-refs"
local args = cjson.decode(ARGV[1])
local group_id = string.match(args.owner, '^[^/]+/([^/]+)/%d+$') or args.owner
local owned = redis.call('EXISTS', key.group(args.job, args.owner), key.request(args.owner)) > 0
  or is_in_checkpoint(args.job, group_id)
return cjson.encode({ owned = owned })
