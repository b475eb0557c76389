--[[ The ledger of a job, rounds that are not folded included, or of one round. Writes nothing.
ARGV[1] JSON: {job, roundId or absent}
Reply: counters, open   objects: name -> number, as in libs/policies/src/ledger
       policy           JSON object: the tail policy of that round, or of the job's last one; absent without any
Errors: JOB_NOT_FOUND, ROUND_NOT_FOUND. Events: none.
Flags: no-writes ]]
return function(tx, args)
  local round_id = args.roundId
  if redis.call('EXISTS', tx.key:job(args.job)) == 0 then
    return Reply.fail('JOB_NOT_FOUND', 'There is no job ' .. args.job, 'job')
  end
  local policy = redis.call('HGET', tx.key:round(args.job, round_id or redis.call('ZRANGE', tx.key:rounds(args.job), -1,
    -1)[1] or ''), 'policy')
  if round_id and not policy then return Reply.fail('ROUND_NOT_FOUND', 'There is no round ' .. round_id, 'roundId') end

  local counters, open = {}, {}
  local function add(into, name, count) into[name] = (into[name] or 0) + tonumber(count) end
  local function add_ledger(id)
    local is_cancelled = redis.call('HGET', tx.key:round(args.job, id), 'state') == 'cancelled'
    local flat = redis.call('HGETALL', tx.key:roundLedger(args.job, id))
    for position = 1, #flat, 2 do
      local length = string.match(flat[position], '^open%.length%.(%d+)$')
      if Ledger.passes_on(flat[position], is_cancelled) then
        add(counters, flat[position], flat[position + 1])
      elseif length and round_id then
        add(open, 'cut.length.' .. length, flat[position + 1])
      end
    end
  end
  if round_id then
    add_ledger(round_id)
  else
    local flat = redis.call('HGETALL', tx.key:jobLedger(args.job))
    for position = 1, #flat, 2 do add(counters, flat[position], flat[position + 1]) end
    for _, id in ipairs(redis.call('ZRANGE', tx.key:rounds(args.job), 0, -1)) do
      if not redis.call('HGET', tx.key:round(args.job, id), 'ledgerFolded') then add_ledger(id) end
    end
    flat = redis.call('HGETALL', tx.key:openLengths(args.job))
    for position = 1, #flat, 2 do add(open, 'cut.length.' .. flat[position], flat[position + 1]) end
  end
  local function object(table) return next(table) and cjson.encode(table) or '{}' end
  return '{"counters":' .. object(counters) .. ',"open":' .. object(open) .. (policy and ',"policy":' .. policy or '')
    .. '}'
end
