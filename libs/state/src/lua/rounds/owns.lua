--[[ Says whether the owner of a payload, a group or a request, is still there. Writes nothing.
ARGV[1] JSON: {job, owner}   owner: groupId or requestId
Reply: owned   boolean
Errors: none. Facts: none. ]]
--- @include "../includes/keys"
local args = cjson.decode(ARGV[1])
return cjson.encode({ owned = redis.call('EXISTS', key.group(args.job, args.owner), key.request(args.owner)) > 0 })
