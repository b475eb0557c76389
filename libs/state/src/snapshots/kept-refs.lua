-- Snapshots own the payloads of the groups they name: no payload is freed while a snapshot names it.
local KeptRefs = {}

function Tx.fields.snapshots_of() return {} end

-- Numbers of the snapshots of a job, with the snapshot that is being saved.
local function snapshot_numbers(tx, job)
  if tx.snapshots_of[job] then return tx.snapshots_of[job] end
  local numbers = {}
  local complete = redis.call('ZRANGE', tx.key:snapshots(job), 0, -1, 'WITHSCORES')
  for position = 2, #complete, 2 do table.insert(numbers, complete[position]) end
  local saving = Job.load(tx, job).saving
  if saving then table.insert(numbers, saving) end
  tx.snapshots_of[job] = numbers
  return numbers
end

function KeptRefs.is_in_snapshot(tx, job, group_id)
  for _, number in ipairs(snapshot_numbers(tx, job)) do
    if redis.call('HEXISTS', tx.key:snapshotPart(job, number, 'groups'), group_id) == 1 then return true end
  end
  return false
end

-- References of the segments of a saved group: {place, group: its hash, requests: list of their hashes}.
function KeptRefs.refs_of_saved(saved)
  local refs = {}
  for _, request in ipairs(saved.requests) do
    for _, segment in ipairs(cjson.decode(request.segments or '[]')) do table.insert(refs, segment.ref) end
  end
  return refs
end

function Tx.fields.kept_of() return {} end

-- The segments of a group that snapshots of its job name, as a set of references. Prompts are counted separately.
function KeptRefs.refs_in_snapshots(tx, job, group_id)
  local name = job .. '/' .. group_id
  if tx.kept_of[name] then return tx.kept_of[name] end
  local kept = {}
  for _, number in ipairs(snapshot_numbers(tx, job)) do
    local packed = redis.call('HGET', tx.key:snapshotPart(job, number, 'groups'), group_id)
    if packed then
      for _, ref in ipairs(KeptRefs.refs_of_saved(cjson.decode(packed))) do kept[ref] = true end
    end
  end
  tx.kept_of[name] = kept
  return kept
end

-- Frees the payload of a segment of a group, unless a snapshot names it.
function KeptRefs.free(tx, job, group_id, ref)
  if not KeptRefs.refs_in_snapshots(tx, job, group_id)[ref] then FreedPayloads.free(tx, ref) end
end

-- Frees the payloads of a group that is deleted, unless a snapshot or another group names them.
function KeptRefs.free_payloads_of(tx, job, group_id, prompt_ref, refs)
  for _, ref in ipairs(refs) do KeptRefs.free(tx, job, group_id, ref) end
  FreedPayloads.release_prompt(tx, job, prompt_ref)
end

return KeptRefs
