-- Every key of a pool, derived from its root `<prefix>:{<pool>}` (KEYS[1]): the one place where names are made.
local root = KEYS[1] .. ':'
local key = {
  meta = root .. 'meta', -- hash: schemaVersion, clockMs, clockAheadMs, leaseSequence, chosenSequence, pendingSequence, ...
  settings = root .. 'settings', -- hash: what pool.configure set, `paused`, and `syncing`: the weight version that is coming
  -- servers (load-balancer)
  servers = root .. 'servers', -- zset: all registered serverIds by last heartbeat, ms
  watchedServers = root .. 'servers:watched', -- zset: those that are neither pending nor failed, by last heartbeat, ms
  pendingServers = root .. 'servers:pending', -- zset: those never heard of since they were registered, by that time, ms
  usableServers = root .. 'servers:usable', -- set: servers that take leases, full or not
  eligible = root .. 'eligible', -- zset: ready servers with room, by load * 2^32 + chosen sequence
  nextEligible = root .. 'eligible:next', -- zset: as eligible, for the policy that takes over when all are scored
  serverVersions = root .. 'servers:versions', -- zset: servers that take leases, by weight version
  serverTokens = root .. 'servers:tokens', -- hash: serverId:epoch -> context tokens of its leases, what each has above 256
  serverSessions = root .. 'servers:sessions', -- hash: serverId:epoch -> sessions bound to it less the leases of sessions
  serverChosen = root .. 'servers:chosen', -- hash: serverId -> sequence of the choice it was last chosen by, below 2^32
  lackingServers = root .. 'servers:lacking', -- hash: feature of engines -> how many servers lack it
  serverCards = root .. 'servers:cards', -- hash: serverId -> its card, see routing/includes/plain-pool.lua
  serverTraits = root .. 'servers:traits', -- hash: serverId -> its traits, one a line, see routing/includes/server-hash.lua
  serverBases = root .. 'servers:bases', -- set: traits `@<weight version>|<what its engine lacks>` of servers there are
  serverFailures = root .. 'servers:failures', -- hash: serverId -> epoch|failed calls in a row|end of its break, ms; only with a breaker
  ring = root .. 'ring', -- zset: serverId#index by hash; only under consistent-hash
  decisions = root .. 'decisions', -- list: the latest decisions, packed, one for each lease sequence
  fullDecisions = root .. 'decisions:full', -- list: the latest decisions with their snapshots, JSON
  leases = root .. 'leases', -- hash: acquireId -> packed lease
  requestLeases = root .. 'leases:requests', -- hash: requestId -> acquireIds of its leases, with | between them; * when they are in a set
  sessions = root .. 'sessions', -- hash: sessionId -> packed binding
  idleSessions = root .. 'sessions:idle', -- zset: sessionId without leases, by last use, ms
  acquireWaiters = root .. 'waiters:acquire', -- hash: acquireId -> packed waiter
  restrictedLanes = root .. 'waiters:restricted', -- hash: lane '@r<hash>' -> the restriction of all who wait in it, JSON
  rehomedLanes = root .. 'waiters:rehome', -- set: serverId that takes no leases now; its lane must be moved
  sessionLanes = root .. 'waiters:sessions', -- set: serverId in whose lane sessions wait, or have waited
  acquireDeadlines = root .. 'waiters:acquire:deadlines', -- zset: acquireId by deadline, ms
  warmingServers = root .. 'servers:warming', -- zset: servers in slow start, by its end, ms
  drainingServers = root .. 'servers:draining', -- zset: servers in drain, by its deadline, ms
  -- workers (both)
  workers = root .. 'workers', -- zset: workerId of live epochs, by the end of its time to live, ms
  voidLeaseEpochs = root .. 'void:leases', -- set: owners whose leases must be returned
  voidAttemptEpochs = root .. 'void:attempts', -- set: worker epochs whose attempts must be returned
  -- jobs (trainer-coordinator)
  jobs = root .. 'jobs', -- set: job
  miscountedJobs = root .. 'jobs:miscounted', -- set: jobs that are to be counted anew from their requests
  openJobs = root .. 'jobs:open', -- set: jobs with a round that is not closed
  claimableJobs = root .. 'jobs:claimable', -- zset: jobs with pending requests, by the service they had
  withheldJobs = root .. 'jobs:withheld', -- set: jobs with pending requests that may give none now: at their cap, blocked, or orphaned
  blockedJobs = root .. 'jobs:blocked', -- hash: job whose requests are not claimed for want of room for their tokens -> why, JSON
  jobService = root .. 'jobs:service', -- hash: job -> service it had when it last gave requests
  claimWaiters = root .. 'waiters:claim', -- hash: claimId -> packed waiter
  claimQueue = root .. 'waiters:claim:queue', -- zset: claimId by arrival, of those that take any job
  claimLanes = root .. 'waiters:claim:lanes', -- set: jobs in whose lane claims wait
  claimDeadlines = root .. 'waiters:claim:deadlines', -- zset: claimId by deadline, ms
  sweeps = root .. 'sweeps', -- set: job/roundId that is opening, has groups to cut, or is to be folded
  roundDeadlines = root .. 'rounds:deadlines', -- zset: job/roundId by deadline, ms
  facts = root .. 'facts', -- stream: capped outbox of facts
  -- aborts (trainer-coordinator)
  aborts = root .. 'aborts', -- zset: abortId whose requests are still being selected, by its start, ms
  abortTombstones = root .. 'aborts:tombstones', -- zset: requestId, '<scope>|' and requestId, or job/groupId, not known when aborted, by the end of its life, ms
  abortingGroups = root .. 'aborts:groups', -- zset: job/groupId with requests that a worker still has, by the start, ms
  abortingLeases = root .. 'aborts:leases', -- zset: packed lease without a request of ours that its worker still has, by the start, ms
  leavingGroups = root .. 'groups:leaving', -- zset: job/groupId that left its round for the long-tail queue, by the start, ms
  droppedGroups = root .. 'groups:dropped', -- zset: job/groupId whose keys are still there, by the end of their life, ms
  abortedAcquires = root .. 'aborts:acquires', -- zset: requestId whose acquires are refused, by the end of that, ms
  -- payloads (trainer-coordinator)
  freedPayloads = root .. 'payloads:freed', -- zset: reference that nothing names any more and whose bytes are not known yet, by the time it was freed, ms
  awaitingPayloads = root .. 'payloads:awaiting', -- zset: reference that waits for its removal, by the time it was freed, ms; 0: it is being removed
  awaitingBytes = root .. 'payloads:awaiting:bytes', -- hash: reference that waits for its removal -> bytes; their sum is awaitingBytes of meta
  oldCheckpoints = root .. 'checkpoints:old', -- set: job/number of checkpoints that are to be deleted
  -- moves (trainer-coordinator)
  movingRequests = root .. 'moves', -- zset: requestId whose holder was told to stop it for a move, by the start, ms
  movingLeases = root .. 'moves:leases', -- hash: leaseId whose holder was told to transfer it -> planId|serverId|epoch or nothing|start, ms
  rebalance = root .. 'rebalance', -- string: settings of the rebalancer, JSON
  rebalanceTurn = root .. 'rebalance:turn', -- string, limited life: somebody plans, or has just planned
  -- weights (trainer-coordinator)
  weights = root .. 'weights', -- hash: version committed last; keptVersion, keptUntilMs: the last change under running requests
  weightSync = root .. 'weights:sync', -- hash: the change of weights that is under way
  pausedEngines = root .. 'weights:engines', -- hash: dialect|endpoint -> for which change the engine was paused, see weights/includes/paused-engines.lua
}
function key.server(id) return root .. 'server:' .. id end -- hash
function key.serverLeases(id, epoch) return root .. 'server-leases:' .. id .. ':' .. epoch end -- set of acquireId
function key.leasesOfRequest(id) return root .. 'request-leases:' .. id end -- set of acquireId, when they are many
function key.serversWith(trait) return root .. 'servers:with:' .. trait end -- set of serverId that have this trait
function key.narrowed(hash) return root .. 'narrowed:' .. hash end -- zset of serverId, gone at the end of the script that made it
function key.serverLane(id) return root .. 'waiters:lane:' .. id end -- zset of acquireId; '*' is the lane for all, '@<n>' the one for weight version n
function key.acquireTurns(priority) return root .. 'waiters:turns:' .. priority end -- zset: workerId by its next turn; '' is the turn in hand
function key.drained(serverId) return root .. 'drained:' .. serverId end -- string, 1 h: instanceId of a server whose drain has ended
function key.groupLeases(id) return root .. 'group-leases:' .. id end -- hash: serverId:epoch -> leases of the group
function key.transfer(id) return root .. 'transfer:' .. id end -- string, 120 s: its lease, target and first answer, JSON
function key.released(acquireId) return root .. 'released:' .. acquireId end -- string, 120 s: packed lease or tombstone
function key.worker(id) return root .. 'worker:' .. id end -- hash, while live: liveEpoch, registrationId, ttlMs, leaseDigest, syncAsked
function key.formerWorker(id) return root .. 'former-worker:' .. id end -- string, 24 h: it was registered and is not any more
function key.workerLeases(id, epoch) return root .. 'worker-leases:' .. id .. ':' .. epoch end -- set of acquireId
function key.workerAttempts(id, epoch) return root .. 'worker-attempts:' .. id .. ':' .. epoch end -- set of requestId
function key.job(job) return root .. 'job:' .. job end -- hash: trainerEpoch, stepsTrained, submittedGroups, ...
function key.jobQuota(job) return root .. 'job-quota:' .. job end -- hash: weight, maxInFlight
function key.books(job) return root .. 'job-books:' .. job end -- hash: requests by state
function key.recount(job) return root .. 'job-recount:' .. job end -- hash, 1 min: id of the recount under way, and the requests it has counted, by state
function key.promptHolders(job) return root .. 'job-prompts:' .. job end -- hash: reference of a prompt -> how many groups and saved groups name it
function key.pending(job) return root .. 'job-pending:' .. job end -- zset: requestId by dispatch order
function key.longtail(job) return root .. 'job-longtail:' .. job end -- zset: groupId by sequence of the first cut
function key.pins(job) return root .. 'job-pins:' .. job end -- zset: groupId of the long-tail queue by step from which it must be taken * 2^32 + its place
function key.lengths(job, step) return root .. 'job-lengths:' .. job .. '/' .. step end -- hash: domain|kind|bin -> groups first submitted in this step
function key.rounds(job) return root .. 'job-rounds:' .. job end -- zset: roundId by step
function key.round(job, round) return root .. 'round:' .. job .. '/' .. round end -- hash
function key.roundGroups(job, round) return root .. 'round-groups:' .. job .. '/' .. round end -- zset: live groupId by arrival
function key.roundHeld(job, round) return root .. 'round-held:' .. job .. '/' .. round end -- zset: groupId that is finished and has no place, by order
function key.roundPlaces(job, round) return root .. 'round-places:' .. job .. '/' .. round end -- hash: domain -> places, live:<domain> -> groups, *spare; only with quotas
function key.roundFailed(job, round) return root .. 'round-failed:' .. job .. '/' .. round end -- list: groupId
function key.roundAccepted(job, round) return root .. 'round-accepted:' .. job .. '/' .. round end -- list: groupId
function key.roundDigests(job, round) return root .. 'round-digests:' .. job .. '/' .. round end -- list: for each accepted group that was read, 16 digits of the digest of all up to it, 16 of its own, groupId
function key.trainedGroups(job) return root .. 'job-trained:' .. job end -- zset: groupId by step, of the rounds whose summaries are kept
function key.checkpoints(job) return root .. 'job-checkpoints:' .. job end -- zset: tag by number; the complete ones
function key.checkpoint(job, number) return root .. 'checkpoint:' .. job .. '/' .. number end -- hash: tag, step, counters, job (JSON), cursor
function key.checkpointPart(job, number, part) return root .. 'checkpoint-' .. part .. ':' .. job .. '/' .. number end -- copy of a key of the job; `groups`: hash, groupId -> JSON
function key.group(job, group) return root .. 'group:' .. job .. '/' .. group end -- hash
function key.request(id) return root .. 'request:' .. id end -- hash
function key.abort(id) return root .. 'abort:' .. id end -- hash: selector, reason, upTo and the work of selecting; limited life
function key.abortRows(id) return root .. 'abort-rows:' .. id end -- zset: what it selected, in order; limited life
function key.fencedLease(leaseId) return root .. 'abort-fenced:' .. leaseId end -- string, limited life: ended by a fence of its server, not by its holder
function key.plan(id) return root .. 'plan:' .. id end -- hash: digest, summary, plannedAtMs, sentMoves; limited life, as its moves and states
function key.planMoves(id) return root .. 'plan-moves:' .. id end -- list: moves, JSON
function key.planStates(id) return root .. 'plan-states:' .. id end -- hash: requestId or leaseId -> state of its move
function key.endedSync(id) return root .. 'weights:ended:' .. id end -- string, 1 h: how a change of weights ended, JSON
function key.claimLane(job) return root .. 'waiters:claim:lane:' .. job end -- zset: claimId by arrival, of those that take this job only
function key.claim(id) return root .. 'claim:' .. id end -- string: first answer of a claim, limited life
function key.roundLedger(job, round) return root .. 'round-ledger:' .. job .. '/' .. round end -- hash: counters
function key.jobLedger(job) return root .. 'job-ledger:' .. job end -- hash: counters of rounds that are folded
function key.openLengths(job) return root .. 'job-open-lengths:' .. job end -- hash: length bin -> samples cut without an end
function key.promptLengths(bucket) return root .. 'prompt-lengths:' .. bucket end -- hash of 48 bits of a prompt's hash -> packed; 90 days
