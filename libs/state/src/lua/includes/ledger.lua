--- @include "keys"
--- @include "length-bin"
-- The ledger of a round, a hash of counters as in libs/policies/src/ledger: each is only ever added to. It is folded into
-- the job's with its round; what comes after that is counted in both. In `open.length.*` it also has the samples that were
-- cut without an end, which the job counts in a hash of its own for as long as they stand so.
local ledger_hashes = {}

local function count_ledger(job, round_id, name, by)
  local id = job .. '/' .. round_id
  local hashes = ledger_hashes[id]
  if not hashes then
    local field = redis.call('HMGET', key.round(job, round_id), 'state', 'ledgerFolded')
    hashes = {}
    if field[1] then table.insert(hashes, key.roundLedger(job, round_id)) end
    if field[2] or not field[1] then table.insert(hashes, key.jobLedger(job)) end
    ledger_hashes[id] = hashes
  end
  for _, hash in ipairs(hashes) do redis.call('HINCRBY', hash, name, string.format('%.0f', by)) end
end

-- Whether a counter of a round is one of its job too. Samples cut without an end are counted by the job for as long as
-- they are; a cancelled round has trained nothing, though its results may have been read before.
local function passes_on(name, is_cancelled)
  if string.match(name, '^open%.') then return false end
  return not is_cancelled or not (string.match(name, '^trained%.') or string.match(name, '^groups%.'))
end

-- A sample has ended by itself or at its budget.
local function count_ended(job, round_id, tokens, at_cap)
  local bin = string.format('%.0f', length_bin(tokens))
  count_ledger(job, round_id, 'ended.length.' .. bin, 1)
  if at_cap then count_ledger(job, round_id, 'ended.atCap.' .. bin, 1) end
end

-- A draw of a sample is lost before its end: it would have become longer.
local function count_lost(job, round_id, tokens)
  count_ledger(job, round_id, 'cut.length.' .. string.format('%.0f', length_bin(tokens)), 1)
end

-- A sample was cut with its tokens kept. Returns what close_open needs when it goes on.
local function count_open(job, round_id, tokens)
  local bin = string.format('%.0f', length_bin(tokens))
  count_ledger(job, round_id, 'open.length.' .. bin, 1)
  redis.call('HINCRBY', key.openLengths(job), bin, 1)
  return bin
end

local function close_open(job, bin)
  if redis.call('HINCRBY', key.openLengths(job), bin, -1) <= 0 then redis.call('HDEL', key.openLengths(job), bin) end
end
