-- The ledger of a round: a hash of counters as in libs/policies/src/ledger, which only grow. When the round is folded,
-- its ledger is added to the ledger of the job; later counts go to both. `open.length.*` counts the samples that were
-- cut without an end. The job counts such samples in a separate hash. When a sample runs again or is dropped, it leaves
-- this hash, and `open.closed.*` of its round counts it.
local Ledger = {}

function Tx.fields.ledger_rounds() return {} end -- job/roundId -> the round, or false when it is gone

-- `owner`: the round itself, or one of its groups; for a group the round is read.
local function find_round(tx, owner)
  if owner.ledgerFolded ~= nil then return owner end
  local name = Round.format_name(owner)
  local round = tx.ledger_rounds[name]
  if round == nil then
    round = Round.load(tx, owner.job, owner.roundId) or false
    tx.ledger_rounds[name] = round
  end
  return round
end

-- Adds to a counter of a round; `owner` as in find_round. Counts of a round that is gone go to the ledger of its job.
function Ledger.count(tx, owner, name, by)
  local round = find_round(tx, owner)
  if round then redis.call('HINCRBY', tx.key:roundLedger(owner.job, owner.roundId), name, Format.integer(by)) end
  if not round or round.ledgerFolded then
    redis.call('HINCRBY', tx.key:jobLedger(owner.job), name, Format.integer(by))
  end
end

-- Whether a counter of a round also counts for its job. The job counts samples that were cut without an end in a
-- separate hash; a cancelled round has trained and excluded nothing, although its results may have been read before.
function Ledger.passes_on(name, is_cancelled)
  if string.match(name, '^open%.') then return false end
  if not is_cancelled then return true end
  return not (string.match(name, '^trained%.') or string.match(name, '^groups%.') or string.match(name, '^excluded%.'))
end

-- Adds the ledger of a round to the ledger of its job, once. The ledger stays with the summary of the round.
function Ledger.fold(tx, round)
  if round.ledgerFolded then return end
  Round.set(tx, round, { ledgerFolded = true })
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

-- Counts a sample that has ended by itself or at its budget of tokens.
function Ledger.count_ended(tx, round, tokens, at_cap)
  local bin = Format.integer(Lengths.bin_of(tokens))
  Ledger.count(tx, round, 'ended.length.' .. bin, 1)
  if at_cap then Ledger.count(tx, round, 'ended.atCap.' .. bin, 1) end
end

-- Counts a sample whose tokens are lost before its end; the sample would have become longer.
function Ledger.count_lost(tx, owner, tokens)
  Ledger.count(tx, owner, 'cut.length.' .. Format.integer(Lengths.bin_of(tokens)), 1)
end

-- Counts a cut sample whose tokens are kept. Returns the bin for close_open, when the sample runs again.
function Ledger.count_open(tx, group, tokens)
  local bin = Format.integer(Lengths.bin_of(tokens))
  Ledger.count(tx, group, 'open.length.' .. bin, 1)
  redis.call('HINCRBY', tx.key:openLengths(group.job), bin, 1)
  return bin
end

function Ledger.close_open(tx, group, bin)
  local job, round_id = group.job, group.roundId
  -- A group that Redis has lost names no round, and the round of a group that is dropped later may be deleted already.
  if round_id and Round.exists(tx, job, round_id) then
    redis.call('HINCRBY', tx.key:roundLedger(job, round_id), 'open.closed.' .. bin, 1)
  end
  if redis.call('HINCRBY', tx.key:openLengths(job), bin, -1) <= 0 then redis.call('HDEL', tx.key:openLengths(job),
    bin) end
end

return Ledger
