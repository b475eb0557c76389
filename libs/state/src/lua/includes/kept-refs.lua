--- @include "keys"
--- @include "reply"
--- @include "freed-payloads"
-- Checkpoints own the payloads of the groups they name: nothing discards those while one of them is there.
local checkpoints_of = {}

-- Numbers of the checkpoints of a job, with the one that is being saved.
local function checkpoint_numbers(job)
  if checkpoints_of[job] then return checkpoints_of[job] end
  local numbers = {}
  local complete = redis.call('ZRANGE', key.checkpoints(job), 0, -1, 'WITHSCORES')
  for position = 2, #complete, 2 do table.insert(numbers, complete[position]) end
  local saving = redis.call('HGET', key.job(job), 'saving')
  if saving then table.insert(numbers, saving) end
  checkpoints_of[job] = numbers
  return numbers
end

local function is_in_checkpoint(job, group_id)
  for _, number in ipairs(checkpoint_numbers(job)) do
    if redis.call('HEXISTS', key.checkpointPart(job, number, 'groups'), group_id) == 1 then return true end
  end
  return false
end

-- Of a flat list of fields and values, as HGETALL gives it.
local function value_of(flat, field)
  for position = 1, #flat, 2 do
    if flat[position] == field then return flat[position + 1] end
  end
end

-- A saved group is {place, group: flat list, requests: list of flat lists}. Returns the prompt and a list of the rest.
local function refs_of_saved(saved)
  local refs = {}
  for _, request in ipairs(saved.requests) do
    for _, segment in ipairs(cjson.decode(value_of(request, 'segments') or '[]')) do table.insert(refs, segment.ref) end
  end
  return value_of(saved.group, 'promptRef'), refs
end

local kept_of = {}

-- The segments of a group that checkpoints of its job name, as a set of references. Prompts have counts of their own.
local function refs_in_checkpoints(job, group_id)
  local name = job .. '/' .. group_id
  if kept_of[name] then return kept_of[name] end
  local kept = {}
  for _, number in ipairs(checkpoint_numbers(job)) do
    local packed = redis.call('HGET', key.checkpointPart(job, number, 'groups'), group_id)
    if packed then
      local _, refs = refs_of_saved(cjson.decode(packed))
      for _, ref in ipairs(refs) do kept[ref] = true end
    end
  end
  kept_of[name] = kept
  return kept
end

-- Frees the payloads of a group that is deleted, unless something else names them.
local function free_payloads_of(job, group_id, prompt_ref, refs)
  local kept = refs_in_checkpoints(job, group_id)
  for _, ref in ipairs(refs) do
    if not kept[ref] then free_payload(ref) end
  end
  release_prompt(job, prompt_ref)
end
