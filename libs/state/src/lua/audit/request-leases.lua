--[[ One page of the lists of leases by request against the leases.
ARGV[1] JSON: {cursor: string, '0' to begin; repair: boolean}
Reply: cursor      string, '0' at the end
       findings    list of {check, where, says, repaired}
Errors: none. Facts: none. ]]
--- @include "../includes/reply"
--- @include "../routing/includes/leases"
--- @include "includes/findings"
local PAGE = 128
local args = cjson.decode(ARGV[1])
local page = redis.call('HSCAN', key.requestLeases, args.cursor, 'COUNT', PAGE)
for position = 1, #page[2], 2 do
  local request_id = page[2][position]
  for acquire_id in string.gmatch(page[2][position + 1], '[^|]+') do
    local packed = redis.call('HGET', key.leases, acquire_id)
    if not packed or request_of(packed) ~= request_id then
      if args.repair then change_request_leases(request_id, acquire_id, false) end
      found('request-without-lease', acquire_id, request_id, args.repair)
    end
  end
end
save_request_leases()
return '{"cursor":' .. cjson.encode(page[1]) .. ',"findings":' .. encode_list(findings) .. '}'
