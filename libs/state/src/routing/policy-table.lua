-- All routing policies by name, and which of them a pool has.
local PolicyTable = {}

-- Files are joined in the order of their paths, so the files of the policies come before this file.
PolicyTable.BY_NAME = {
  ['least-inflight'] = LeastInflight,
  ['least-tokens'] = LeastTokens,
  ['least-sessions'] = LeastSessions,
  ['least-kv'] = LeastKv,
  ['round-robin'] = RoundRobin,
  ['consistent-hash'] = ConsistentHash,
  random = Random,
  ['power-of-two'] = PowerOfTwo,
}

function Tx.fields.policies() return PolicyTable.BY_NAME end
function Tx.fields.policy_name(tx) return Settings.get(tx, 'policy') or 'least-inflight' end
function Tx.fields.policy(tx) return PolicyTable.BY_NAME[tx.policy_name] end
-- The policy that takes over when all servers are scored by it; false without one.
function Tx.fields.next_policy(tx) return PolicyTable.BY_NAME[Settings.get(tx, 'nextPolicy')] or false end

return PolicyTable
