--[[ Whether the change of weights of this pool that is under way has paused an engine: then it goes on with that one.
ARGV[1] JSON: {endpoint, dialect}
Reply: held   boolean
Errors: none. Facts: none.
Flags: no-writes ]]
--- @include "includes/weight-sync"
--- @include "includes/paused-engines"
local args = cjson.decode(ARGV[1])
local entry, sync = load_engine(engine_name(args.dialect, args.endpoint)), load_sync()
return cjson.encode({ held = entry ~= nil and sync ~= nil and entry.syncId == sync.syncId and entry.resumeAtMs == nil })
