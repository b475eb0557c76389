--[[ The ledger of a job, including rounds that are not folded, or the ledger of one round. Writes nothing.
ARGV[1] JSON: {job, roundId or absent}
Reply: StoredLedger
Errors: JOB_NOT_FOUND, ROUND_NOT_FOUND.
Flags: no-writes ]]
return function(tx, args)
  local job, round_id, rounds = args.job, args.roundId, tx.key:rounds(args.job)
  if not Job.exists(tx, job) then return Trainer.no_job(job) end
  local shown = Round.load(tx, job, round_id or redis.call('ZRANGE', rounds, -1, -1)[1] or '')
  if round_id and not shown then return Reply.fail('ROUND_NOT_FOUND', 'There is no round ' .. round_id, 'roundId') end

  local counters, open, closed = {}, {}, {}
  local function add(into, name, count) into[name] = (into[name] or 0) + tonumber(count) end
  local function add_ledger(id, round)
    local is_cancelled = round and round.state == 'cancelled'
    for name, count in pairs(Hashes.all(tx.key:roundLedger(job, id))) do
      local kind, length = string.match(name, '^open%.(%a+)%.(%d+)$')
      if Ledger.passes_on(name, is_cancelled) then
        add(counters, name, count)
      elseif length and round_id then
        add(kind == 'length' and open or closed, 'cut.length.' .. length, count)
      end
    end
  end
  if round_id then
    add_ledger(round_id, shown)
  else
    for name, count in pairs(Hashes.all(tx.key:jobLedger(job))) do add(counters, name, count) end
    for _, id in ipairs(redis.call('ZRANGE', rounds, 0, -1)) do
      local round = Round.load(tx, job, id)
      if not round or not round.ledgerFolded then add_ledger(id, round) end
    end
    for bin, count in pairs(Hashes.all(tx.key:openLengths(job))) do add(open, 'cut.length.' .. bin, count) end
  end
  return Reply.object({}, { counters = cjson.encode(counters), open = cjson.encode(open),
    closed = cjson.encode(closed), policy = shown and Round.read_rest(tx, shown).policy })
end
