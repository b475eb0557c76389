-- Receipts. Each granted lease leaves one packed line in a ring, written once at the end of a script, and every n-th
-- its whole snapshot in a smaller ring. Line: seq|decidedAtMs|acquireId|serverId|inflight|branch|via|policy|version|
-- key|eligible|best, with best as `serverId=key;...`. No id holds any of | = ;.
local Decisions = {}

local RING, FULL_RING = 512, 64
-- tx.pending_decision -- of the last choice
function Tx.fields.new_lines() return {} end
function Tx.fields.new_full() return {} end

function Decisions.is_sampled(tx, seq)
  return seq % (Settings.number(tx, 'decisionSampleEvery') or 1000) == 0
end

-- Lua writes numbers from 1e14 on with an exponent.
local function plain(number)
  return number < 1e14 and number or Format.integer(number)
end

function Decisions.record(tx, lease, acquire_id, decision)
  local best = ''
  for _, one in ipairs(decision.best) do best = best .. one.serverId .. '=' .. plain(one.key) .. ';' end
  tx.new_lines[#tx.new_lines + 1] = plain(lease.seq) .. '|' .. plain(lease.grantedAtMs) .. '|' .. acquire_id .. '|'
    .. lease.serverId
    .. '|' .. decision.inflight .. '|' .. decision.branch .. '|' .. (decision.via or '') .. '|' .. decision.policy
    .. '|'
    .. decision.policyVersion .. '|' .. plain(decision.key) .. '|' .. decision.eligible .. '|' .. best
  if decision.snapshot then
    table.insert(tx.new_full, cjson.encode({ seq = lease.seq, decidedAtMs = lease.grantedAtMs, acquireId = acquire_id,
      serverId = lease.serverId, decision = decision }))
  end
end

function Decisions.read_line(line)
  local seq, at, acquire_id, server_id, inflight, branch, via, policy, version, load, eligible,
    packed = string.match(line,
    '^(%d+)|(%d+)|([^|]*)|([^|]*)|(%d+)|([^|]*)|([^|]*)|([^|]*)|(%d+)|(%d+)|(%d+)|(.*)$')
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

-- The decision of this lease while it is in the ring, which holds each sequence once, or nil; also when the lease was
-- moved to another server since.
function Decisions.recorded(tx, lease)
  local seq = lease.seq
  local last = redis.call('LINDEX', tx.key.decisions, -1)
  local line = last and redis.call('LINDEX', tx.key.decisions, seq - tonumber(string.match(last, '^%d+')) - 1)
  for _, one in ipairs(tx.new_lines) do
    if string.match(one, '^%d+') == Format.integer(seq) then line = one end
  end
  local record = line and Decisions.read_line(line)
  return record and record.seq == seq and record.serverId == lease.serverId and record.decision or nil
end

function Decisions.save(tx)
  for ring, lines in pairs({ [tx.key.decisions] = tx.new_lines, [tx.key.fullDecisions] = tx.new_full }) do
    if #lines > 0 then
      redis.call('RPUSH', ring, unpack(lines))
      redis.call('LTRIM', ring, -(ring == tx.key.decisions and RING or FULL_RING), -1)
    end
  end
  tx.new_lines, tx.new_full = {}, {}
end

return Decisions
