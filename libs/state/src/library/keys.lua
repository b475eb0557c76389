-- Every key of a pool, derived from its root `<prefix>:{<pool>}:`: the one place where names are made. `tx.key.leases`
-- is a key of the pool, `tx.key:server(id)` one of many.
local Keys = {}

local NAMES = {
  -- hash: schemaVersion, clockMs, clockAheadMs, leaseSequence, generation, enginesOf (weights/paused-engines.lua),
  -- samplingSinceMs: when a session got sampling parameters for the first time; ...
  meta = 'meta',
  -- hash: the settings of pool.configure, and
  -- paused, pausedUntilMs   only while the pool is paused
  -- syncing                 target version of the change of weights that is under way
  -- weightsBeganMs          start of the latest change of weights
  -- weightsUnknownBeforeMs  servers whose last report is older have unknown weights (weights/weight-clock.lua)
  settings = 'settings',
  settingsHistory = 'settings:history', -- list: the last versions of the settings, latest first, JSON
  -- servers (load-balancer)
  servers = 'servers', -- zset: all registered serverIds by last heartbeat, ms
  watchedServers = 'servers:watched', -- zset: servers that are neither pending nor failed, by last heartbeat, ms
  -- zset: serverId by the latest time at which its engine showed that it generates, ms; see servers/signs.lua
  serverSigns = 'servers:signs',
  silentServers = 'servers:silent', -- zset: serverId whose callers get no tokens, by the expiry of this report, ms
  failingServers = 'servers:failing', -- hash: serverId -> its failures in a row, see servers/failing-servers.lua
  pendingServers = 'servers:pending', -- zset: servers that have sent nothing since their registration, by its time, ms
  usableServers = 'servers:usable', -- set: servers that take leases, full or not
  eligible = 'eligible', -- zset: ready servers with room, by load * 2^32 + chosen sequence
  nextEligible = 'eligible:next', -- zset: as eligible, for the policy that takes over when all are scored
  serverVersions = 'servers:versions', -- zset: servers that take leases, by weight version
  serverTokens = 'servers:tokens', -- hash: serverId:epoch -> context tokens of its leases, less 256 for each lease
  serverSessions = 'servers:sessions', -- hash: serverId:epoch -> sessions bound to it less the leases of sessions
  serverChosen = 'servers:chosen', -- hash: serverId -> sequence of its latest choice, below 2^32
  lackingServers = 'servers:lacking', -- hash: feature of engines -> how many servers lack it
  modelLists = 'servers:model-lists', -- hash: models of an engine, one a line -> servers that list just these
  serverRecords = 'servers:records', -- hash: serverId -> its record, see servers/server-record.lua
  serverIndexEntries = 'servers:index-entries', -- hash: serverId -> its index entries, one a line
  serverVersionEntries = 'servers:version-entries', -- set: all `@<weight version>|<missing features>` of servers
  ring = 'ring', -- zset: serverId#index by hash; only under consistent-hash
  decisions = 'decisions', -- list: the latest decisions, packed, one for each lease sequence
  fullDecisions = 'decisions:full', -- list: the latest decisions with their snapshots, JSON
  leases = 'leases', -- hash: acquireId -> packed lease
  -- hash: requestId -> acquireIds of its leases, with | between them; * when they are in a set
  requestLeases = 'leases:requests',
  sessions = 'sessions', -- hash: sessionId -> packed binding
  idleSessions = 'sessions:idle', -- zset: sessionId without leases, by last use, ms
  endedSessions = 'sessions:ended', -- zset: serverId|epoch|sessionId whose engine must be notified, by the time, ms
  -- only with `sessionAdmission`, see sessions/residency.lua
  serverKv = 'servers:kv', -- hash: serverId:epoch -> sums of its resident sessions; =serverId -> KV memory
  pausedSessions = 'sessions:paused', -- zset: sessionId whose context was given up, by the time, ms
  sessionCounts = 'sessions:counts', -- hash: reached, ended or gap, and bin -> how many, see sessions/outlook.lua
  sessionOutlook = 'sessions:outlook', -- hash: what to expect of sessions, computed from their counts
  acquireWaiters = 'waiters:acquire', -- hash: acquireId -> packed waiter
  restrictedLanes = 'waiters:restricted', -- hash: lane '@r<hash>' -> the restriction of all its waiters, JSON
  rehomedLanes = 'waiters:rehome', -- set: serverId that takes no leases now; its lane must be moved
  sessionLanes = 'waiters:sessions', -- set: serverId in whose lane sessions wait, or have waited
  acquireDeadlines = 'waiters:acquire:deadlines', -- zset: acquireId by deadline, ms
  warmingServers = 'servers:warming', -- zset: servers in slow start or busy, by its end, ms
  drainingServers = 'servers:draining', -- zset: servers in drain, by its deadline, ms
  -- workers (both)
  workers = 'workers', -- zset: workerId of live epochs, by the end of its time to live, ms
  expiredLeaseEpochs = 'expired:leases', -- set: owners whose leases must be returned
  expiredAttemptEpochs = 'expired:attempts', -- set: worker epochs whose attempts must be returned
  -- jobs (trainer-coordinator)
  jobs = 'jobs', -- set: job
  miscountedJobs = 'jobs:miscounted', -- set: jobs that are to be recounted from their requests
  -- zset, 10 min: job/takeoverId of the last 1,000 takeovers that found no job, by time, ms
  earlyTakeovers = 'jobs:early-takeovers',
  openJobs = 'jobs:open', -- set: jobs with a round that is not closed
  claimableJobs = 'jobs:claimable', -- zset: jobs of built-in workers with pending requests, by the service they had
  withheldJobs = 'jobs:withheld', -- set: jobs with pending requests: at their cap, blocked, or orphaned
  blockedJobs = 'jobs:blocked', -- hash: job without room for the tokens of its requests -> reason, JSON
  jobService = 'jobs:service', -- hash: job -> service it had when it last gave requests
  claimWaiters = 'waiters:claim', -- hash: claimId -> packed waiter
  claimQueue = 'waiters:claim:queue', -- zset: claimId by arrival, of claims that take any job
  claimLanes = 'waiters:claim:lanes', -- set: lanes in which claims wait, see requests/claims.lua
  claimKinds = 'claims:kinds', -- set: kinds of workers that have claimed; '' for built-in workers
  claimDeadlines = 'waiters:claim:deadlines', -- zset: claimId by deadline, ms
  sweeps = 'sweeps', -- set: job/roundId that is opening, has groups to cut, or is to be folded
  roundDeadlines = 'rounds:deadlines', -- zset: job/roundId by deadline, ms
  events = 'events', -- stream: capped outbox of events
  -- aborts (trainer-coordinator)
  aborts = 'aborts', -- zset: abortId whose requests are still being selected, by its start, ms
  -- zset: name of a request or group that was unknown when aborted, by the end of its life, ms. The name is requestId,
  -- '<scope>|' and requestId, or 'G|' and job/groupId, since a requestId may be any text, also job/groupId
  abortTombstones = 'aborts:tombstones',
  abortingGroups = 'aborts:groups', -- zset: job/groupId with requests that a worker still has, by the start, ms
  -- zset: leaseId of an aborted lease without a claimed request, until its worker has ended it, by the start, ms
  abortingLeases = 'aborts:leases',
  leavingGroups = 'groups:leaving', -- zset: job/groupId that left its round for the long-tail queue, by the start, ms
  droppedGroups = 'groups:dropped', -- zset: job/groupId whose keys are still there, by the end of their life, ms
  abortedAcquires = 'aborts:acquires', -- zset: requestId whose acquires are refused, by the end of the refusal, ms
  -- payloads (trainer-coordinator)
  -- zset: reference that nothing names any more, until its bytes are known, by the time it was freed, ms
  freedPayloads = 'payloads:freed',
  awaitingPayloads = 'payloads:awaiting', -- zset: reference to be removed, by the time it was freed, ms; 0: removing
  -- hash: reference that waits for its removal -> bytes; their sum is awaitingBytes of meta
  awaitingBytes = 'payloads:awaiting:bytes',
  oldSnapshots = 'snapshots:old', -- set: job/number of snapshots that are to be deleted
  -- moves (trainer-coordinator)
  movingRequests = 'moves', -- zset: requestId whose holder was asked to stop it for a move, by the start, ms
  -- hash: leaseId whose holder was asked to transfer it -> planId|serverId|epoch or nothing|start, ms
  movingLeases = 'moves:leases',
  rebalance = 'rebalance', -- string: settings of the rebalancer, JSON
  rebalanceTurn = 'rebalance:turn', -- string, limited life: a replica plans, or has just planned
  rebalancePlannedAt = 'rebalance:planned', -- string: when a replica made the last plan of its own accord, ms
  -- trajectories (gateway)
  trajectories = 'trajectories', -- zset: id of a session that is recorded, by its last use, ms
  -- weights (trainer-coordinator)
  -- hash: version committed last; keptVersion, keptUntilMs: the last change under running requests; clockMs
  -- (weights/weight-clock.lua)
  weights = 'weights',
  weightSync = 'weights:sync', -- hash: the change of weights that is under way
  pausedEngines = 'weights:engines', -- hash: dialect|endpoint -> entry, see weights/paused-engines.lua
  -- payloads of one job, under the root `<prefix>:payload:{<pool>/<job>}:`; `meta` has clockMs and usedBytes
  payloadIndex = 'index', -- zset: item by the time it was stored or last found to be owned, ms
  payloadFreed = 'freed', -- set: item that waits for its removal and no longer counts towards the quota
  -- Root `{~jobs}` also has `deployments`: set of the ids of the deployments that use this store; not used by scripts.
  payloadRegistry = 'registry', -- zset, root `{~jobs}` only: job by its last put, ms
}

local methods = { __index = function(keys, name)
  if Keys[name] then return Keys[name] end
  local key = keys.root .. NAMES[name]
  rawset(keys, name, key)
  return key
end }

-- Keys of the pool of the last transition: the next transition is often of the same pool.
local latest = { root = '' }

function Keys.of(root)
  if latest.root ~= root then latest = setmetatable({ root = root }, methods) end
  return latest
end

-- Keys of one kind, whose names have one variable part or two.
local function by_one(prefix) return function(keys, one) return keys.root .. prefix .. one end end
local function by_two(prefix, separator)
  return function(keys, one, other) return keys.root .. prefix .. one .. separator .. other end
end

Keys.server = by_one('server:') -- hash: fields of a server that are not in its record
Keys.serverLeases = by_two('server-leases:', ':') -- set of acquireId
Keys.leasesOfRequest = by_one('request-leases:') -- set of acquireId, when they are many
Keys.serversWith = by_one('servers:with:') -- set of serverId that have this index entry
Keys.narrowed = by_one('narrowed:') -- zset of serverId, gone at the end of the script that made it
-- zset of acquireId; '*' is the lane for all servers, '@<n>' the lane for weight version n
Keys.serverLane = by_one('waiters:lane:')
Keys.acquireTurns = by_one('waiters:turns:') -- zset: workerId by its next place; '' by the place reached
Keys.drained = by_one('drained:') -- string, 1 h: instanceId of a server whose drain has ended
Keys.groupLeases = by_one('group-leases:') -- hash: serverId:epoch -> leases of the group
Keys.awaySessions = by_two('sessions-away:', ':') -- zset: resident sessionId between two turns, by their time, ms
Keys.sessionFamily = by_one('session-family:') -- hash: shared -> tokens; serverId:epoch -> resident sessions
Keys.transfer = by_one('transfer:') -- string, 120 s: lease, target and first answer of a transfer, JSON
Keys.released = by_one('released:') -- string, 120 s: packed lease or tombstone
Keys.worker = by_one('worker:') -- hash, while live: liveEpoch, registrationId, ttlMs, leaseDigest, syncAsked
Keys.formerWorker = by_one('former-worker:') -- string, 24 h: last registrationIds of a worker, JSON
Keys.workerLeases = by_two('worker-leases:', ':') -- set of acquireId
Keys.workerAttempts = by_two('worker-attempts:', ':') -- set of requestId
Keys.job = by_one('job:') -- hash, see records/job.lua
Keys.claimableOfKind = by_one('jobs:claimable:') -- zset: as claimableJobs, of jobs for workers of one kind
Keys.jobQuota = by_one('job-quota:') -- hash: weight, maxInFlight, version
Keys.counts = by_one('job-counts:') -- hash: requests by state
-- hash, 1 min: id of the recount under way, and the requests it has counted, by state
Keys.recount = by_one('job-recount:')
Keys.promptHolders = by_one('job-prompts:') -- hash: reference of a prompt -> how many groups and saved groups name it
Keys.pending = by_one('job-pending:') -- zset: requestId by dispatch order
Keys.longtail = by_one('job-longtail:') -- zset: groupId by sequence of the first cut
-- zset: groupId of the long-tail queue by step from which it must be taken * 2^32 + its place
Keys.pins = by_one('job-pins:')
Keys.lengths = by_two('job-lengths:', '/') -- hash: domain|kind|bin -> groups first submitted in this step
Keys.rounds = by_one('job-rounds:') -- zset: roundId by step
Keys.round = by_two('round:', '/') -- hash, see records/round.lua
Keys.roundGroups = by_two('round-groups:', '/') -- zset: live groupId by arrival
Keys.roundHeld = by_two('round-held:', '/') -- zset: groupId that is finished and has no place, by order
-- hash: domain -> places, *live:<domain> -> groups, *spare; only with quotas
Keys.roundPlaces = by_two('round-places:', '/')
Keys.roundFailed = by_two('round-failed:', '/') -- list: groupId
Keys.roundLost = by_two('round-lost:', '/') -- list: groups that ended without training, JSON
Keys.jobLost = by_one('job-lost:') -- list: groups that ended without training, not reported by a round yet, JSON
Keys.roundAccepted = by_two('round-accepted:', '/') -- list: groupId
-- list: for each accepted group that was read: 16 digits of the digest of all groups up to it, 16 of its own digest,
-- groupId
Keys.roundDigests = by_two('round-digests:', '/')
-- hash: accepted groupId whose rewards are known -> 'kept', 'excluded' or 'replaced'
Keys.roundRewards = by_two('round-rewards:', '/')
Keys.trainedGroups = by_one('job-trained:') -- zset: groupId by step, of the rounds whose summaries are kept
Keys.snapshots = by_one('job-snapshots:') -- zset: tag by number, of complete snapshots
Keys.snapshot = by_two('snapshot:', '/') -- hash: tag, step, counters, job (JSON), cursor
Keys.group = by_two('group:', '/') -- hash, see records/group.lua
Keys.request = by_one('request:') -- hash, see records/request.lua
Keys.abort = by_one('abort:') -- hash: selector, reason, upTo and the remaining steps of the selection; limited life
Keys.abortRows = by_one('abort-rows:') -- zset: rows that an abort has selected, in order; limited life
-- string, limited life: a lease was ended by a fence of its server, not by its holder
Keys.fencedLease = by_one('abort-fenced:')
Keys.plan = by_one('plan:') -- hash: digest, summary, plannedAtMs, sentMoves; limited life, as its moves and states
Keys.planMoves = by_one('plan-moves:') -- list: moves, JSON
Keys.planStates = by_one('plan-states:') -- hash: requestId or leaseId -> state of its move
Keys.endedSync = by_one('weights:ended:') -- string, 1 h: how a change of weights ended, JSON
Keys.claimLane = by_one('waiters:claim:lane:') -- zset: claimId by arrival, of claims of one job or one kind of worker
Keys.claimers = by_one('claims:by-kind:') -- zset: workerId by its last claim, ms; the latest of one kind
Keys.claim = by_one('claim:') -- string: first answer of a claim, limited life
Keys.roundLedger = by_two('round-ledger:', '/') -- hash: counters
-- string: the accepted groups of a round under `auto`, see libs/policies/src/auto/recorded-groups.ts
Keys.roundRecorded = by_two('round-recorded:', '/')
Keys.jobLedger = by_one('job-ledger:') -- hash: counters of rounds that are folded
Keys.openLengths = by_one('job-open-lengths:') -- hash: length bin -> samples cut without an end
Keys.promptLengths = by_one('prompt-lengths:') -- hash of 48 bits of a prompt's hash -> packed; 90 days
-- string, 10 min: a page of prompt.remember was added
Keys.rememberedPrompts = by_one('prompts-remembered:')
Keys.partial = by_one('partial:') -- string, 10 min: saved tokens of a request of the gateway, JSON
-- list, 10 min: JSON, each with the tokens since the save before, see partials/partial.store.ts
Keys.partialPieces = by_one('partial:pieces:')
Keys.partialOwner = by_one('partial:owner:') -- string, 24 h: claim of such a request, JSON, see partials/claim.lua
Keys.trajectory = by_one('trajectory:') -- hash, see trajectories/trajectories.lua
-- Copy of a key of the job; part `groups`: hash, groupId -> JSON.
function Keys:snapshotPart(job, number, part) return self.root .. 'snapshot-' .. part .. ':' .. job .. '/'
  .. number end

return Keys
