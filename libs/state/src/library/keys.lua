-- Every key of a pool, derived from its root `<prefix>:{<pool>}:`: the one place where names are made. `tx.key.leases`
-- is a key of the pool, `tx.key:server(id)` one of many.
local Keys = {}

local NAMES = {
  meta = 'meta', -- hash: schemaVersion, clockMs, clockAheadMs, leaseSequence, chosenSequence, pendingSequence, ...
  settings = 'settings', -- hash: what pool.configure set, `paused`, and `syncing`: the weight version that is coming
  -- servers (load-balancer)
  servers = 'servers', -- zset: all registered serverIds by last heartbeat, ms
  watchedServers = 'servers:watched', -- zset: those that are neither pending nor failed, by last heartbeat, ms
  pendingServers = 'servers:pending', -- zset: those never heard of since they were registered, by that time, ms
  usableServers = 'servers:usable', -- set: servers that take leases, full or not
  eligible = 'eligible', -- zset: ready servers with room, by load * 2^32 + chosen sequence
  nextEligible = 'eligible:next', -- zset: as eligible, for the policy that takes over when all are scored
  serverVersions = 'servers:versions', -- zset: servers that take leases, by weight version
  serverTokens = 'servers:tokens', -- hash: serverId:epoch -> context tokens of its leases, what each has above 256
  serverSessions = 'servers:sessions', -- hash: serverId:epoch -> sessions bound to it less the leases of sessions
  serverChosen = 'servers:chosen', -- hash: serverId -> sequence of the choice it was last chosen by, below 2^32
  lackingServers = 'servers:lacking', -- hash: feature of engines -> how many servers lack it
  serverCards = 'servers:cards', -- hash: serverId -> its card, see leases/plain-pool.lua
  serverTraits = 'servers:traits', -- hash: serverId -> its traits, one a line, see servers/server-hash.lua
  serverBases = 'servers:bases', -- set: traits `@<weight version>|<what its engine lacks>` of servers there are
  -- hash: serverId -> epoch|failed calls in a row|end of its break, ms; only with a breaker
  serverFailures = 'servers:failures',
  ring = 'ring', -- zset: serverId#index by hash; only under consistent-hash
  decisions = 'decisions', -- list: the latest decisions, packed, one for each lease sequence
  fullDecisions = 'decisions:full', -- list: the latest decisions with their snapshots, JSON
  leases = 'leases', -- hash: acquireId -> packed lease
  -- hash: requestId -> acquireIds of its leases, with | between them; * when they are in a set
  requestLeases = 'leases:requests',
  sessions = 'sessions', -- hash: sessionId -> packed binding
  idleSessions = 'sessions:idle', -- zset: sessionId without leases, by last use, ms
  acquireWaiters = 'waiters:acquire', -- hash: acquireId -> packed waiter
  restrictedLanes = 'waiters:restricted', -- hash: lane '@r<hash>' -> the restriction of all who wait in it, JSON
  rehomedLanes = 'waiters:rehome', -- set: serverId that takes no leases now; its lane must be moved
  sessionLanes = 'waiters:sessions', -- set: serverId in whose lane sessions wait, or have waited
  acquireDeadlines = 'waiters:acquire:deadlines', -- zset: acquireId by deadline, ms
  warmingServers = 'servers:warming', -- zset: servers in slow start, by its end, ms
  drainingServers = 'servers:draining', -- zset: servers in drain, by its deadline, ms
  -- workers (both)
  workers = 'workers', -- zset: workerId of live epochs, by the end of its time to live, ms
  expiredLeaseEpochs = 'expired:leases', -- set: owners whose leases must be returned
  expiredAttemptEpochs = 'expired:attempts', -- set: worker epochs whose attempts must be returned
  -- jobs (trainer-coordinator)
  jobs = 'jobs', -- set: job
  miscountedJobs = 'jobs:miscounted', -- set: jobs that are to be counted anew from their requests
  openJobs = 'jobs:open', -- set: jobs with a round that is not closed
  claimableJobs = 'jobs:claimable', -- zset: jobs with pending requests, by the service they had
  -- set: jobs with pending requests that may give none now: at their cap, blocked, or orphaned
  withheldJobs = 'jobs:withheld',
  -- hash: job whose requests are not claimed for want of room for their tokens -> why, JSON
  blockedJobs = 'jobs:blocked',
  jobService = 'jobs:service', -- hash: job -> service it had when it last gave requests
  claimWaiters = 'waiters:claim', -- hash: claimId -> packed waiter
  claimQueue = 'waiters:claim:queue', -- zset: claimId by arrival, of those that take any job
  claimLanes = 'waiters:claim:lanes', -- set: jobs in whose lane claims wait
  claimDeadlines = 'waiters:claim:deadlines', -- zset: claimId by deadline, ms
  sweeps = 'sweeps', -- set: job/roundId that is opening, has groups to cut, or is to be folded
  roundDeadlines = 'rounds:deadlines', -- zset: job/roundId by deadline, ms
  events = 'events', -- stream: capped outbox of events
  -- aborts (trainer-coordinator)
  aborts = 'aborts', -- zset: abortId whose requests are still being selected, by its start, ms
  -- zset: requestId, '<scope>|' and requestId, or 'G|' and job/groupId, not known when aborted, by the end of its life,
  -- ms. A requestId may be any text, also that of a group
  abortTombstones = 'aborts:tombstones',
  abortingGroups = 'aborts:groups', -- zset: job/groupId with requests that a worker still has, by the start, ms
  -- zset: packed lease without a request of ours that its worker still has, by the start, ms
  abortingLeases = 'aborts:leases',
  leavingGroups = 'groups:leaving', -- zset: job/groupId that left its round for the long-tail queue, by the start, ms
  droppedGroups = 'groups:dropped', -- zset: job/groupId whose keys are still there, by the end of their life, ms
  abortedAcquires = 'aborts:acquires', -- zset: requestId whose acquires are refused, by the end of that, ms
  -- payloads (trainer-coordinator)
  -- zset: reference that nothing names any more and whose bytes are not known yet, by the time it was freed, ms
  freedPayloads = 'payloads:freed',
  -- zset: reference that waits for its removal, by the time it was freed, ms; 0: it is being removed
  awaitingPayloads = 'payloads:awaiting',
  -- hash: reference that waits for its removal -> bytes; their sum is awaitingBytes of meta
  awaitingBytes = 'payloads:awaiting:bytes',
  oldCheckpoints = 'checkpoints:old', -- set: job/number of checkpoints that are to be deleted
  -- moves (trainer-coordinator)
  movingRequests = 'moves', -- zset: requestId whose holder was told to stop it for a move, by the start, ms
  -- hash: leaseId whose holder was told to transfer it -> planId|serverId|epoch or nothing|start, ms
  movingLeases = 'moves:leases',
  rebalance = 'rebalance', -- string: settings of the rebalancer, JSON
  rebalanceTurn = 'rebalance:turn', -- string, limited life: somebody plans, or has just planned
  -- weights (trainer-coordinator)
  weights = 'weights', -- hash: version committed last; keptVersion, keptUntilMs: the last change under running requests
  weightSync = 'weights:sync', -- hash: the change of weights that is under way
  -- hash: dialect|endpoint -> for which change the engine was paused, see weights/paused-engines.lua
  pausedEngines = 'weights:engines',
  -- payloads of one job, under the root `<prefix>:payload:{<pool>/<job>}:`; `meta` has clockMs and usedBytes
  payloadIndex = 'index', -- zset: item by the time it was stored or last found to be owned, ms
  payloadFreed = 'freed', -- set: item that waits for its removal; it counts to the quota no longer
  -- and `deployments`, root `{~jobs}` only: set of the ids of the deployments that use this store; not used by scripts
  payloadRegistry = 'registry', -- zset, root `{~jobs}` only: job by its last put, ms
}

local methods = { __index = function(keys, name)
  if Keys[name] then return Keys[name] end
  local key = keys.root .. NAMES[name]
  rawset(keys, name, key)
  return key
end }

function Keys.of(root) return setmetatable({ root = root }, methods) end

-- hash
function Keys:server(id) return self.root .. 'server:' .. id end
-- set of acquireId
function Keys:serverLeases(id, epoch) return self.root .. 'server-leases:' .. id .. ':' .. epoch end
-- set of acquireId, when they are many
function Keys:leasesOfRequest(id) return self.root .. 'request-leases:' .. id end
-- set of serverId that have this trait
function Keys:serversWith(trait) return self.root .. 'servers:with:' .. trait end
-- zset of serverId, gone at the end of the script that made it
function Keys:narrowed(hash) return self.root .. 'narrowed:' .. hash end
-- zset of acquireId; '*' is the lane for all, '@<n>' the one for weight version n
function Keys:serverLane(id) return self.root .. 'waiters:lane:' .. id end
-- zset: workerId by its next turn; '' is the turn in hand
function Keys:acquireTurns(priority) return self.root .. 'waiters:turns:' .. priority end
-- string, 1 h: instanceId of a server whose drain has ended
function Keys:drained(serverId) return self.root .. 'drained:' .. serverId end
-- hash: serverId:epoch -> leases of the group
function Keys:groupLeases(id) return self.root .. 'group-leases:' .. id end
-- string, 120 s: its lease, target and first answer, JSON
function Keys:transfer(id) return self.root .. 'transfer:' .. id end
-- string, 120 s: packed lease or tombstone
function Keys:released(acquireId) return self.root .. 'released:' .. acquireId end
-- hash, while live: liveEpoch, registrationId, ttlMs, leaseDigest, syncAsked
function Keys:worker(id) return self.root .. 'worker:' .. id end
-- string, 24 h: it was registered and is not any more
function Keys:formerWorker(id) return self.root .. 'former-worker:' .. id end
-- set of acquireId
function Keys:workerLeases(id, epoch) return self.root .. 'worker-leases:' .. id .. ':' .. epoch end
-- set of requestId
function Keys:workerAttempts(id, epoch) return self.root .. 'worker-attempts:' .. id .. ':' .. epoch end
-- hash: trainerEpoch, stepsTrained, submittedGroups, ...
function Keys:job(job) return self.root .. 'job:' .. job end
-- hash: weight, maxInFlight
function Keys:jobQuota(job) return self.root .. 'job-quota:' .. job end
-- hash: requests by state
function Keys:counts(job) return self.root .. 'job-counts:' .. job end
-- hash, 1 min: id of the recount under way, and the requests it has counted, by state
function Keys:recount(job) return self.root .. 'job-recount:' .. job end
-- hash: reference of a prompt -> how many groups and saved groups name it
function Keys:promptHolders(job) return self.root .. 'job-prompts:' .. job end
-- zset: requestId by dispatch order
function Keys:pending(job) return self.root .. 'job-pending:' .. job end
-- zset: groupId by sequence of the first cut
function Keys:longtail(job) return self.root .. 'job-longtail:' .. job end
-- zset: groupId of the long-tail queue by step from which it must be taken * 2^32 + its place
function Keys:pins(job) return self.root .. 'job-pins:' .. job end
-- hash: domain|kind|bin -> groups first submitted in this step
function Keys:lengths(job, step) return self.root .. 'job-lengths:' .. job .. '/' .. step end
-- zset: roundId by step
function Keys:rounds(job) return self.root .. 'job-rounds:' .. job end
-- hash
function Keys:round(job, round) return self.root .. 'round:' .. job .. '/' .. round end
-- zset: live groupId by arrival
function Keys:roundGroups(job, round) return self.root .. 'round-groups:' .. job .. '/' .. round end
-- zset: groupId that is finished and has no place, by order
function Keys:roundHeld(job, round) return self.root .. 'round-held:' .. job .. '/' .. round end
-- hash: domain -> places, live:<domain> -> groups, *spare; only with quotas
function Keys:roundPlaces(job, round) return self.root .. 'round-places:' .. job .. '/' .. round end
-- list: groupId
function Keys:roundFailed(job, round) return self.root .. 'round-failed:' .. job .. '/' .. round end
-- list: groupId
function Keys:roundAccepted(job, round) return self.root .. 'round-accepted:' .. job .. '/' .. round end
-- list: for each accepted group that was read, 16 digits of the digest of all up to it, 16 of its own, groupId
function Keys:roundDigests(job, round) return self.root .. 'round-digests:' .. job .. '/' .. round end
-- zset: groupId by step, of the rounds whose summaries are kept
function Keys:trainedGroups(job) return self.root .. 'job-trained:' .. job end
-- zset: tag by number; the complete ones
function Keys:checkpoints(job) return self.root .. 'job-checkpoints:' .. job end
-- hash: tag, step, counters, job (JSON), cursor
function Keys:checkpoint(job, number) return self.root .. 'checkpoint:' .. job .. '/' .. number end
-- copy of a key of the job; `groups`: hash, groupId -> JSON
function Keys:checkpointPart(job, number, part) return self.root .. 'checkpoint-' .. part .. ':' .. job .. '/'
  .. number end
-- hash
function Keys:group(job, group) return self.root .. 'group:' .. job .. '/' .. group end
-- hash
function Keys:request(id) return self.root .. 'request:' .. id end
-- hash: selector, reason, upTo and the work of selecting; limited life
function Keys:abort(id) return self.root .. 'abort:' .. id end
-- zset: what it selected, in order; limited life
function Keys:abortRows(id) return self.root .. 'abort-rows:' .. id end
-- string, limited life: ended by a fence of its server, not by its holder
function Keys:fencedLease(leaseId) return self.root .. 'abort-fenced:' .. leaseId end
-- hash: digest, summary, plannedAtMs, sentMoves; limited life, as its moves and states
function Keys:plan(id) return self.root .. 'plan:' .. id end
-- list: moves, JSON
function Keys:planMoves(id) return self.root .. 'plan-moves:' .. id end
-- hash: requestId or leaseId -> state of its move
function Keys:planStates(id) return self.root .. 'plan-states:' .. id end
-- string, 1 h: how a change of weights ended, JSON
function Keys:endedSync(id) return self.root .. 'weights:ended:' .. id end
-- zset: claimId by arrival, of those that take this job only
function Keys:claimLane(job) return self.root .. 'waiters:claim:lane:' .. job end
-- string: first answer of a claim, limited life
function Keys:claim(id) return self.root .. 'claim:' .. id end
-- hash: counters
function Keys:roundLedger(job, round) return self.root .. 'round-ledger:' .. job .. '/' .. round end
-- hash: counters of rounds that are folded
function Keys:jobLedger(job) return self.root .. 'job-ledger:' .. job end
-- hash: length bin -> samples cut without an end
function Keys:openLengths(job) return self.root .. 'job-open-lengths:' .. job end
-- hash of 48 bits of a prompt's hash -> packed; 90 days
function Keys:promptLengths(bucket) return self.root .. 'prompt-lengths:' .. bucket end

return Keys
