-- The ledger of a round, a hash of counters as in libs/policies/src/ledger: each is only ever added to. It is folded
-- into the job's with its round; what comes after that is counted in both. In `open.length.*` it also has the samples
-- that were cut without an end, which the job counts in a separate hash until they run again or are dropped; then
-- `open.closed.*` of the round in which that happens counts them.
local Ledger = {}

function Tx.fields.ledgers() return {} end -- job/roundId -> 'round', 'job' or 'both': where its counters are

function Ledger.note_round(tx, job, round_id, state, is_folded)
  tx.ledgers[job .. '/' .. round_id] = not state and 'job' or is_folded and 'both' or 'round'
end

function Ledger.count(tx, job, round_id, name, by)
  local id = job .. '/' .. round_id
  if not tx.ledgers[id] then
    Ledger.note_round(tx, job, round_id, unpack(redis.call('HMGET', tx.key:round(job, round_id), 'state',
      'ledgerFolded')))
  end
  local where = tx.ledgers[id]
  if where ~= 'job' then redis.call('HINCRBY', tx.key:roundLedger(job, round_id), name, Format.integer(by)) end
  if where ~= 'round' then redis.call('HINCRBY', tx.key:jobLedger(job), name, Format.integer(by)) end
end

-- Whether a counter of a round is also one of its job. The job counts samples that were cut without an end in a
-- separate hash; a cancelled round has trained and excluded nothing, although its results may have been read before.
function Ledger.passes_on(name, is_cancelled)
  if string.match(name, '^open%.') then return false end
  if not is_cancelled then return true end
  return not (string.match(name, '^trained%.') or string.match(name, '^groups%.') or string.match(name, '^excluded%.'))
end

-- The ledger of a round becomes a part of the job's, once, and stays with the summary of the round.
function Ledger.fold(tx, round)
  if redis.call('HSETNX', tx.key:round(round.job, round.roundId), 'ledgerFolded', 1) == 0 then return end
  local is_cancelled, of_job = round.state == 'cancelled', tx.key:jobLedger(round.job)
  local counters = Hashes.all(tx.key:roundLedger(round.job, round.roundId))
  for name, count in pairs(counters) do
    if Ledger.passes_on(name, is_cancelled) then redis.call('HINCRBY', of_job, name, count) end
  end
  if not counters['trained.samples'] or is_cancelled then return end
  local mean = math.floor(counters['trained.tokens'] / counters['trained.samples'] + 0.5)
  redis.call('HINCRBY', of_job, 'batch.count', 1)
  redis.call('HINCRBY', of_job, 'batch.sum', Format.integer(mean))
  redis.call('HINCRBY', of_job, 'batch.squares', Format.integer(mean * mean))
end

-- A sample has ended by itself or at its budget.
function Ledger.count_ended(tx, job, round_id, tokens, at_cap)
  local bin = Format.integer(Lengths.bin_of(tokens))
  Ledger.count(tx, job, round_id, 'ended.length.' .. bin, 1)
  if at_cap then Ledger.count(tx, job, round_id, 'ended.atCap.' .. bin, 1) end
end

-- A draw of a sample is lost before its end: it would have become longer.
function Ledger.count_lost(tx, job, round_id, tokens)
  Ledger.count(tx, job, round_id, 'cut.length.' .. Format.integer(Lengths.bin_of(tokens)), 1)
end

-- A sample was cut with its tokens kept. Returns the bin that close_open needs when the sample runs again.
function Ledger.count_open(tx, job, round_id, tokens)
  local bin = Format.integer(Lengths.bin_of(tokens))
  Ledger.count(tx, job, round_id, 'open.length.' .. bin, 1)
  redis.call('HINCRBY', tx.key:openLengths(job), bin, 1)
  return bin
end

function Ledger.close_open(tx, job, round_id, bin)
  -- A group that Redis has lost names no round, and the round of a group that is dropped later may be deleted already.
  if round_id and redis.call('EXISTS', tx.key:round(job, round_id)) == 1 then
    redis.call('HINCRBY', tx.key:roundLedger(job, round_id), 'open.closed.' .. bin, 1)
  end
  if redis.call('HINCRBY', tx.key:openLengths(job), bin, -1) <= 0 then redis.call('HDEL', tx.key:openLengths(job),
    bin) end
end

return Ledger
