--[[ Lists payloads of one job that were stored, or last found to be owned, up to a moment; oldest first.

ARGV[1] cutoffMs: integer; limit: integer, at most 128; skip: integer, how many of them are known
reply   items: list of strings; empty: boolean, the job has no payload at all
Flags: no-writes ]]
--- @include "includes/payload-keys"
--- @include "../includes/reply"
local args = cjson.decode(ARGV[1])
if redis.call('EXISTS', payloads.index) == 0 then return '{"items":[],"empty":true}' end
local cutoff = string.format('%.0f', args.cutoffMs)
local items = redis.call('ZRANGEBYSCORE', payloads.index, '-inf', cutoff, 'LIMIT', args.skip, args.limit)
return '{"empty":false,"items":' .. encode_list(items) .. '}'
