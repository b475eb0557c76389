-- Counts of the samples that a step is trained on. Each accepted group of a round is counted once, in the order of
-- acceptance, page by page: when the results are read, or before the round is folded. Where rewards may exclude a
-- group, it is counted when its rewards are known, or before the fold.
local TrainedLedger = {}

local LEDGER_PAGE = 128
local RECORDED_SAMPLES = 2048
local GOLDEN_RATIO = 0.618033988749895

-- Record of a group for replays by `auto`; '' for most groups of a large round, and for a group whose samples Redis has
-- lost. The rule is recordGroup and isRecorded of libs/policies/src/auto/recorded-groups.ts.
local function recorded_group(position, round, lengths, finished_ms)
  local every_nth = math.ceil(round.neededGroups * #lengths / RECORDED_SAMPLES)
  if #lengths == 0 or position % every_nth ~= math.floor(round.step * GOLDEN_RATIO % 1 * every_nth) then return '' end
  local bins = {}
  for index, length in ipairs(lengths) do bins[index] = Format.integer(Lengths.bin_of(length.tokens)) end
  return (finished_ms or '') .. ':' .. table.concat(bins, ',') .. ';'
end

-- Counts one finished sample with `add(name, by)`; returns its length for the prompt memory.
local function count_sample(tx, request, version, is_excluded, is_long, add)
  local tokens, off_policy, oldest = 0, 0, version
  for _, segment in ipairs(cjson.decode(request.segments)) do
    local made_by = segment.weightVersion or version
    tokens = tokens + segment.tokenCount
    if made_by < version then off_policy = off_policy + segment.tokenCount end
    if segment.tokenCount > 0 then oldest = math.min(oldest, made_by) end
  end
  local at_cap = Request.read_end(tx, request).finishReason == 'length'
  local bin = Format.integer(Lengths.bin_of(tokens))
  if is_excluded then
    add('excluded.samples', 1)
    add('excluded.length.' .. bin, 1)
    return { tokens = tokens, capped = at_cap }
  end
  add('trained.samples', 1)
  add('trained.tokens', tokens)
  add('trained.offPolicyTokens', off_policy)
  add('trained.length.' .. bin, 1)
  add('trained.span.' .. Format.integer(version - oldest), 1)
  if at_cap then add('trained.atCap', 1) end
  if is_long then
    add('trained.longSamples', 1)
    add('trained.longTokens', tokens)
    if at_cap then add('trained.longAtCap', 1) end
  end
  return { tokens = tokens, capped = at_cap }
end

-- Counts one page of the accepted groups of a completed round into its ledger and the prompt memory. A page ends with
-- the group that brings it to 128 requests. Returns true when nothing is left to count.
function TrainedLedger.count_accepted(tx, job, round_id)
  local round = Round.load(tx, job, round_id)
  if not round or (round.state ~= 'completed' and round.state ~= 'closed') then return true end
  local counted, accepted = Round.read_rest(tx, round).ledgerGroups, round.acceptedGroups
  if counted >= accepted then return true end

  local sums, touched, waits, recorded = {}, 0, false, {}
  local function add(name, by) sums[name] = (sums[name] or 0) + by end
  while counted < accepted and touched < LEDGER_PAGE do
    local group_id = redis.call('LINDEX', tx.key:roundAccepted(job, round_id), counted)
    -- The list is shorter than its count: Redis has lost the rest.
    if not group_id then
      counted = accepted
      break
    end
    local outcome = Rewards.outcome(tx, round, group_id)
    waits = round.state == 'completed' and round.equalRewards ~= 'keep' and not outcome
    if waits then break end
    local is_excluded = outcome == 'excluded' or outcome == 'replaced'
    local group = Group.load(tx, job, group_id)
    if group then Group.read_past(tx, group) end
    -- A group that is gone has no lengths.
    local lengths, launched = {}, group and group.launched or 0
    for index = 0, launched - 1 do
      local request = Request.load(tx, Request.format_id(job, group_id, index))
      if request and request.state == 'finished' then
        table.insert(lengths, count_sample(tx, request, round.weightVersion, is_excluded, round.kind == 'long', add))
      end
    end
    add(is_excluded and 'groups.excluded' or 'groups.cuts.' .. Format.integer(group and group.cuts or 0), 1)
    if group and group.promptHash and lengths[1] then PromptLengths.remember(tx, group.promptHash, lengths) end
    if round.records then
      table.insert(recorded, recorded_group(counted, round, lengths,
        group and not group.taken and group.finishedMs))
    end
    counted, touched = counted + 1, touched + math.max(1, launched)
  end
  for name, by in pairs(sums) do Ledger.count(tx, round, name, by) end
  if recorded[1] then redis.call('APPEND', tx.key:roundRecorded(job, round_id), table.concat(recorded)) end
  Round.set(tx, round, { ledgerGroups = counted })
  return waits or counted >= accepted
end

return TrainedLedger
