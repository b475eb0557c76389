-- Loads as numbers: the load of a lease, and the sums that are stored beside the leases.
local Loads = {}

Loads.LOAD_UNIT = 4294967296 -- 2^32, the room for the sequence of the last choice
local HIGHEST_LOAD = 1048576 -- 2^20: above it all loads count as equal, so that scores stay exact
Loads.TOKENS_PER_LOAD = 256 -- also the tokens of a lease without contextTokens

function Loads.weighed(amount, server)
  local load = math.floor(amount / server.weight)
  return load < HIGHEST_LOAD and load or HIGHEST_LOAD
end

-- Counts by `serverId:epoch` that move with leases and sessions; written once, by save_counts.
function Tx.fields.token_changes() return {} end
function Tx.fields.session_changes() return {} end

function Loads.count_name(server_id, epoch) return server_id .. ':' .. epoch end

function Loads.change_count(changes, server_id, epoch, change)
  local name = Loads.count_name(server_id, epoch)
  changes[name] = (changes[name] or 0) + change
end

-- The stored count of a server, with the changes of this transition.
function Loads.count_of(hash, changes, server)
  local name = Loads.count_name(server.id, server.epoch)
  return (tonumber(redis.call('HGET', hash, name) or nil) or 0) + (changes[name] or 0)
end

local function save_counts(hash, changes)
  local names = {}
  for name, change in pairs(changes) do
    if change ~= 0 then names[#names + 1] = name end
  end
  if #names == 0 then return end
  local before = redis.call('HMGET', hash, unpack(names))
  local kept, zero = {}, {}
  for index, name in ipairs(names) do
    local count = (tonumber(before[index] or nil) or 0) + changes[name]
    if count == 0 then
      zero[#zero + 1] = name
    else
      kept[#kept + 1] = name
      kept[#kept + 1] = Format.integer(count)
    end
  end
  Hashes.write(hash, kept, zero)
end

function Loads.save(tx)
  local tokens, sessions = rawget(tx, 'token_changes'), rawget(tx, 'session_changes')
  if tokens then save_counts(tx.key.serverTokens, tokens) end
  if sessions then save_counts(tx.key.serverSessions, sessions) end
  tx.token_changes, tx.session_changes = nil, nil
end

-- Tokens of a lease that are stored: every lease counts TOKENS_PER_LOAD, and only tokens above that are stored.
function Loads.surplus_tokens(context_tokens) return math.max(0, (context_tokens or 0) - Loads.TOKENS_PER_LOAD) end

return Loads
