--[[ Returns what the pool has counted about its sessions, and stores an outlook that was computed from counts
(libs/policies/src/sessions). The counts are halved now and then, so that the outlook follows the workload.
ARGV[1] JSON: {outlook}   object: field -> number, or absent: nothing is stored
Reply: SessionLearning
Flags: allow-oom ]]
return function(tx, args)
  local MAX_COUNTED = 200000
  if not tx.admits_by_kv then return '{"isOn":false}' end
  if args.outlook then Hashes.set(tx.key.sessionOutlook, args.outlook) end
  local counts, sum = Hashes.all(tx.key.sessionCounts), 0
  for field, count in pairs(counts) do
    counts[field] = tonumber(count)
    sum = sum + counts[field]
  end
  if sum > MAX_COUNTED then
    for field, count in pairs(counts) do
      counts[field] = math.floor(count / 2)
      redis.call('HSET', tx.key.sessionCounts, field, counts[field])
    end
  end
  return '{"isOn":true,"counts":' .. cjson.encode(counts) .. '}'
end
