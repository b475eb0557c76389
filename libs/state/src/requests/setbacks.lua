-- The setbacks of a request: attempts in a row that an engine failed or did not serve, without a further token between
-- them. JSON in the field `setbacks` of its hash: {count, tokens: that it had kept, sinceMs: of the first failure,
-- starts: those of servers that failed it, servers: where its attempts ended so, the last one last}.
-- Evidence against a request are failures on different starts of servers: its maxFailures. The same starts may fail it
-- again until a deadline. An engine that did not serve it is no evidence.
local Setbacks = {}

local MOST_SERVERS = 16

local function without(list, value)
  local others = {}
  for _, one in ipairs(list) do
    if one ~= value then table.insert(others, one) end
  end
  return others
end

local function read(request, tokens)
  local run = request.setbacks and cjson.decode(request.setbacks)
  if run and run.tokens >= tokens then return run end
  return { count = 0, tokens = tokens, starts = {}, servers = {} }
end

-- An attempt that no server is known of is like one on a server of its own.
local function start_of(tx, request, server_id)
  if not server_id then return request.attempt end
  local server = Servers.get(tx, server_id)
  return server_id .. '@' .. (server and server.epoch or '')
end

-- Notes that the attempt ended so. `why`: {serverId?, isFailure?, deadlineMs?}; `made`: tokens that it adds. True when
-- the request has failed too often.
function Setbacks.note(tx, request, why, made, most_failures)
  local run = read(request, request.tokens + made)
  run.count = run.count + 1
  if why.serverId then
    run.servers = without(run.servers, why.serverId)
    table.insert(run.servers, why.serverId)
    if #run.servers > MOST_SERVERS then table.remove(run.servers, 1) end
  end
  local is_over = false
  if why.isFailure then
    local start = start_of(tx, request, why.serverId)
    run.starts = without(run.starts, start)
    table.insert(run.starts, start)
    run.sinceMs = run.sinceMs or tx.now
    is_over = #run.starts > most_failures or (why.deadlineMs ~= nil and tx.now - run.sinceMs >= why.deadlineMs)
  end
  request.setbacks = cjson.encode(run)
  redis.call('HSET', tx.key:request(request.id), 'setbacks', request.setbacks, 'failures', #run.starts)
  return is_over
end

-- For a claim: how many there were, and the servers to avoid; nothing after a further token.
function Setbacks.of_claim(request)
  if not request.setbacks then return nil, nil end
  local run = read(request, request.tokens)
  if run.count == 0 then return nil, nil end
  return run.count, run.servers[1] and run.servers or nil
end

return Setbacks
