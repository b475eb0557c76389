--[[ Forgets one page of sessions; a scan: each one that is there all the time is met. One with leases is bound anew by
its next lease, and forgotten with its last.
ARGV[1] JSON: {cursor}: string, '0' to begin
Reply: cleared     number
       cursor      string, '0' at the end
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "includes/leases"
local PAGE = 128
local page = redis.call('HSCAN', key.sessions, cjson.decode(ARGV[1]).cursor, 'COUNT', PAGE)
local cleared = 0
for index = 1, #page[2], 2 do
  local session_id, binding = page[2][index], unpack_binding(page[2][index + 1])
  if binding.leases == 0 then
    forget_session(session_id, binding)
    cleared = cleared + 1
  elseif binding.epoch ~= NO_EPOCH then
    count_session(binding.serverId, binding.epoch, -1)
    binding.epoch, binding.dpRank, binding.finished = NO_EPOCH, nil, true
    save_binding(session_id, binding)
    cleared = cleared + 1
  end
end
save_changes()
return '{"cleared":' .. cleared .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
