-- Receipts. Each granted lease leaves one packed line in a ring, written once at the end of a script, and every n-th
-- lease also its whole snapshot in a smaller ring. Line: seq|decidedAtMs|acquireId|serverId|inflight|branch|via|policy|
-- version|key|eligible|best, with best as `serverId=key;...`. No id contains any of | = ;.
local Decisions = {}

local RING, FULL_RING = 512, 64
local SURPLUS = 64 -- lines that a ring may have above its size, so that one trim serves many lines
function Tx.fields.new_lines() return {} end
function Tx.fields.new_full() return {} end
function Tx.fields.sample_every(tx) return Settings.number(tx, 'decisionSampleEvery') or 1000 end
-- Part of a line that is the same in all lines of a transition.
function Tx.fields.policy_text(tx) return tx.policy_name .. '|' .. (Settings.get(tx, 'version') or '0') .. '|' end

-- `choice`: {branch, via?, key, eligible, best: text by Order.best, snapshot?}; `inflight`: leases of the server, with
-- the new lease. Returns the line.
function Decisions.record(tx, seq_text, acquire_id, server_id, inflight, choice)
  local line = seq_text .. '|' .. tx.now_text .. '|' .. acquire_id .. '|' .. server_id .. '|'
    .. Format.integer(inflight) .. '|' .. choice.branch .. '|' .. (choice.via or '') .. '|' .. tx.policy_text
    .. Format.integer(choice.key) .. '|' .. Format.integer(choice.eligible) .. '|' .. choice.best
  local lines = tx.new_lines
  lines[#lines + 1] = line
  if choice.snapshot then
    local full = Decisions.read_line(line)
    full.decision.snapshot = choice.snapshot
    table.insert(tx.new_full, cjson.encode(full))
  end
  return line
end

function Decisions.read_line(line)
  local seq, at, acquire_id, server_id, inflight, branch, via, policy, version, load, eligible, packed = string.match(
    line, '^(%d+)|(%d+)|([^|]*)|([^|]*)|(%d+)|([^|]*)|([^|]*)|([^|]*)|(%d+)|(%d+)|(%d+)|(.*)$')
  local best = {}
  for id, one in string.gmatch(packed, '([^=;]+)=(%d+)') do
    table.insert(best, { serverId = id, key = tonumber(one) })
  end
  return {
    seq = tonumber(seq),
    decidedAtMs = tonumber(at),
    acquireId = acquire_id,
    serverId = server_id,
    decision = {
      policy = policy,
      branch = branch,
      via = via ~= '' and via or nil,
      inflight = tonumber(inflight),
      policyVersion = tonumber(version),
      key = tonumber(load),
      eligible = tonumber(eligible),
      best = #best > 0 and best or nil,
    },
  }
end

-- The decision of this lease. Nil when the ring has lost it, or when the lease was moved to another server since. The
-- ring has each sequence once.
function Decisions.recorded(tx, lease)
  local seq = lease.seq
  local last = redis.call('LINDEX', tx.key.decisions, -1)
  local line = last and redis.call('LINDEX', tx.key.decisions, seq - tonumber(string.match(last, '^%d+')) - 1)
  for _, one in ipairs(rawget(tx, 'new_lines') or {}) do
    if string.match(one, '^%d+') == Format.integer(seq) then line = one end
  end
  local record = line and Decisions.read_line(line)
  return record and record.seq == seq and record.serverId == lease.serverId and record.decision or nil
end

local function push(ring, lines, most)
  if not lines then return end
  if redis.call('RPUSH', ring, unpack(lines)) >= most + SURPLUS then redis.call('LTRIM', ring, -most, -1) end
end

function Decisions.save(tx)
  push(tx.key.decisions, rawget(tx, 'new_lines'), RING)
  push(tx.key.fullDecisions, rawget(tx, 'new_full'), FULL_RING)
  tx.new_lines, tx.new_full = nil, nil
end

return Decisions
