/** Script that counts everything again from the records, and returns differences from the stored counts. */
export const RECOUNT = `
local root = KEYS[1] .. ':'
local all = redis.call('KEYS', root .. '*')
local function keys_of(kind)
  local found = {}
  for _, name in ipairs(all) do
    if string.sub(name, #root + 1, #root + #kind) == kind then table.insert(found, name) end
  end
  return found
end
local wrong = {}
local function compare(name, kept, counted)
  if tonumber(kept or 0) ~= counted then table.insert(wrong, name .. ': kept ' .. tostring(kept) .. ', counted ' .. counted) end
end
local counts, live, finished, held = {}, {}, {}, {}
for _, name in ipairs(keys_of('request:')) do
  local f = redis.call('HMGET', name, 'state', 'workerId', 'workerEpoch')
  local id = string.sub(name, #root + #'request:' + 1)
  local group = string.match(id, '^(.+)/%d+$')
  counts[f[1]] = (counts[f[1]] or 0) + 1
  local holding = f[1] == 'claimed' or f[1] == 'running' or f[1] == 'cutting'
  if holding then
    table.insert(held, id)
    if redis.call('SISMEMBER', root .. 'worker-attempts:' .. f[2] .. ':' .. f[3], id) == 0 then table.insert(wrong, id .. ' is not in the index of its holder') end
  end
  if holding or f[1] == 'pending' then live[group] = (live[group] or 0) + 1 end
  if f[1] == 'finished' then finished[group] = (finished[group] or 0) + 1 end
  if (redis.call('ZSCORE', root .. 'job-pending:job', id) and 'pending' or '-') ~= (f[1] == 'pending' and 'pending' or '-') then
    table.insert(wrong, id .. ' and the pending queue disagree')
  end
end
local indexed = 0
for _, name in ipairs(keys_of('worker-attempts:')) do indexed = indexed + redis.call('SCARD', name) end
compare('held', indexed, #held)
for _, state in ipairs({ 'pending', 'claimed', 'running', 'cutting', 'unfinished', 'finished' }) do
  compare(state, redis.call('HGET', root .. 'job-counts:job', state), counts[state] or 0)
end
local sum = 0
local counts = redis.call('HGETALL', root .. 'job-counts:job')
for position = 1, #counts, 2 do if counts[position] ~= 'submitted' then sum = sum + tonumber(counts[position + 1]) end end
compare('submitted', redis.call('HGET', root .. 'job-counts:job', 'submitted'), sum)
local queued, open, accepted, leaving, aborting, told, dropped = 0, {}, {}, 0, 0, 0, 0
for _, name in ipairs(keys_of('group:')) do
  local id = string.sub(name, #root + #'group:' + 1)
  local f = redis.call('HMGET', name, 'live', 'finished', 'state', 'roundId')
  compare(id .. ' live', f[1], live[id] or 0)
  compare(id .. ' finished', f[2], finished[id] or 0)
  if f[3] == 'unfinished' then queued = queued + 1 end
  -- Groups of single samples that were stopped stand there too.
  if f[3] == 'aborting' then
    aborting = aborting + 1
    if redis.call('ZSCORE', root .. 'aborts:groups', id) then told = told + 1 end
  end
  if f[3] == 'dropped' then dropped = dropped + 1 end
  if f[3] == 'leaving' then leaving = leaving + 1 end
  if f[3] == 'accepted' then accepted[f[4]] = (accepted[f[4]] or 0) + 1 end
  if f[3] == 'live' then open[f[4]] = (open[f[4]] or 0) + 1 end
end
compare('longtail', redis.call('ZCARD', root .. 'job-longtail:job'), queued)
local settling = leaving
for _, round in ipairs(redis.call('ZRANGE', root .. 'job-rounds:job', 0, -1)) do
  local f = redis.call('HMGET', root .. 'round:job/' .. round, 'liveGroups', 'state', 'cancelMode')
  -- Those accepted by a round that was cancelled are given back like the others.
  local live = (open[round] or 0) + (f[2] == 'cancelled' and accepted[round] or 0)
  compare(round .. ' liveGroups', f[1], live)
  if f[2] ~= 'open' and f[2] ~= 'opening' and f[3] ~= 'drop' then settling = settling + live end
end
compare('leaving', redis.call('ZCARD', root .. 'groups:leaving'), leaving)
compare('settling', redis.call('HGET', root .. 'job:job', 'settlingGroups'), settling)
compare('aborting', told, aborting)
compare('dropped', redis.call('HGET', root .. 'job:job', 'droppedGroups') or 0, aborting + dropped)
return wrong`;
