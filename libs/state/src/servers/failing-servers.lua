-- Servers whose latest calls failed, for setbacks of requests: while most servers fail calls of other prompts, a
-- failure is no evidence about the request. `failingServers` has for each such server the time of the first failure in
-- a row, and the prompt of all failures in this row: `<job>/<group>`, since all samples of a group have one prompt, or
-- the id of another request; `*` for several prompts.
local FailingServers = {}

local SEVERAL = '*'
-- Maximum failing servers that are read for one request; up to this number, the answer is exact.
local SAMPLE = 64

local function to_prompt(request_id)
  local job, group_id = Request.parse_id(request_id)
  return job and job .. '/' .. group_id or request_id
end

local function parse(value)
  local since_ms, prompt = string.match(value, '^(%d+) (.*)$')
  return tonumber(since_ms), prompt
end

function FailingServers.note(tx, server_id, request_id)
  local known = redis.call('HGET', tx.key.failingServers, server_id)
  local since_ms, prompt = tx.now, to_prompt(request_id)
  if known then
    local known_prompt
    since_ms, known_prompt = parse(known)
    if known_prompt ~= prompt then prompt = SEVERAL end
  end
  redis.call('HSET', tx.key.failingServers, server_id, Format.integer(since_ms) .. ' ' .. prompt)
end

-- Ends the row of failures: a call has finished, or the start of the server is over.
function FailingServers.forget(tx, server_id) redis.call('HDEL', tx.key.failingServers, server_id) end

-- True while more than half of the watched servers fail calls of other prompts than the prompt of this request. A
-- failing server counts once it was heard after its first failure: a server that died of a request fails all its calls,
-- and says nothing about other servers. Only a sample of many failing servers is read, since every request of a large
-- pool may ask at once. The second value is true if only answers of servers to a probe are missing.
function FailingServers.are_most(tx, request_id)
  local watched = redis.call('ZCARD', tx.key.watchedServers)
  local noted = redis.call('HLEN', tx.key.failingServers)
  if noted * 2 <= watched then return false, false end
  local own, heard, unheard = to_prompt(request_id), 0, 0
  local sample = redis.call('HRANDFIELD', tx.key.failingServers, SAMPLE, 'WITHVALUES')
  for index = 1, #sample, 2 do
    local since_ms, prompt = parse(sample[index + 1])
    local heard_ms = prompt ~= own and redis.call('ZSCORE', tx.key.watchedServers, sample[index])
    if heard_ms and tonumber(heard_ms) > since_ms then
      heard = heard + 1
    elseif heard_ms then
      unheard = unheard + 1
    end
  end
  local function is_most(count) return count / (#sample / 2) * noted * 2 > watched end
  local are_most = is_most(heard)
  return are_most, not are_most and is_most(heard + unheard)
end

return FailingServers
