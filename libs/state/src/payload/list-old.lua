--[[ Lists payloads of one job that were stored, or last found to be owned, up to a moment; oldest first.
ARGV[1] cutoffMs: integer; limit: integer, at most 128; skip: integer, how many of them are known
Reply: items: list of strings; empty: boolean, the job has no payload at all
Flags: no-writes ]]
return function(tx, args)
  if redis.call('EXISTS', tx.key.payloadIndex) == 0 then return '{"items":[],"empty":true}' end
  local cutoff = Format.integer(args.cutoffMs)
  local items = redis.call('ZRANGEBYSCORE', tx.key.payloadIndex, '-inf', cutoff, 'LIMIT', args.skip, args.limit)
  return '{"empty":false,"items":' .. Reply.list(items) .. '}'
end
