--[[ Blocks the claims of a job whose payload quota is nearly used up. The claims stay blocked until there is room for
the samples that workers have and one more. A sample counts as the mean maxTokens of the job, with `bytesPerToken` for
each token.
ARGV[1] JSON: {job, usedBytes, quotaBytes, bytesPerToken, isRefused, fault}: PayloadRoomArgs. After a refusal a
  twentieth of the quota must be free first, unless the store is nearly empty. `fault`: why the store takes no payloads
  of any size; absent: it takes payloads
Reply: PayloadRoomAnswer
Flags: allow-oom ]]
return function(tx, args)
  local REFUSED_SHARE, EMPTY_SHARE = 0.05, 0.9
  local packed = redis.call('HGET', tx.key.blockedJobs, args.job)
  local known = packed and cjson.decode(packed)
  local free = args.quotaBytes - args.usedBytes
  local need = (ClaimTurns.held_by_workers(tx, args.job) + 1) * Counts.sample_bytes(tx, args.job, args.bytesPerToken)
  local must_come = known and known.mustBeFreeBytes or 0
  if args.isRefused then
    must_come = math.max(must_come, math.min(free + REFUSED_SHARE * args.quotaBytes, EMPTY_SHARE * args.quotaBytes))
  end
  need = math.max(need, must_come)

  local blocked = args.fault ~= nil or free < need
  if blocked then
    redis.call('HSET', tx.key.blockedJobs, args.job, cjson.encode({
      code = args.fault and 'UNAVAILABLE' or 'PAYLOAD_STORE_FULL', mustBeFreeBytes = must_come,
      sinceMs = known and known.sinceMs or tx.now,
      message = args.fault and args.fault .. '. Requests are claimed again when the store takes payloads'
        or string.format('The payloads of the job take %.0f of %.0f bytes, and requests are claimed again when %.0f '
          .. 'are free. Close the rounds that are complete, drop groups of the long-tail queue or old snapshots, or '
          .. 'raise PAYLOAD_QUOTA_BYTES or the size of the disk', args.usedBytes, args.quotaBytes, math.ceil(need)),
    }))
  elseif known then
    redis.call('HDEL', tx.key.blockedJobs, args.job)
    ClaimTurns.readmit(tx, args.job)
  end
  return Reply.object({ blocked = blocked, changed = blocked == not known, madeRoom = tx.jobs_readmitted })
end
