import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LUA_ROOT } from './function-runner';

/** Who learns that Redis was set back and has lost the last writes to a kind of key, and how. */
const LEARNS_OF_LOSS: Record<string, string> = {
  // The stamp of the next call is answered GENERATION_CHANGED (rounds/generation.lua); job.reconcile restores the rest.
  'the trainer, by its stamp': `meta jobs openJobs earlyTakeovers job counts lengths rounds round roundGroups roundHeld
    roundPlaces roundFailed roundAccepted roundDigests roundRewards trainedGroups group request pending longtail pins
    promptHolders claimableJobs claimableOfKind withheldJobs jobService miscountedJobs recount sweeps roundDeadlines droppedGroups
    leavingGroups abortingGroups snapshots snapshot snapshotPart oldSnapshots roundLost jobLost roundLedger roundRecorded jobLedger
    openLengths weights weightSync endedSync`,
  // The epoch of the worker is unknown or expired (WORKER_NOT_FOUND, FENCED), or the digests of its heartbeat differ.
  'the worker, by its epoch and heartbeat': `workers worker formerWorker workerLeases workerAttempts expiredLeaseEpochs
    expiredAttemptEpochs leases requestLeases leasesOfRequest serverLeases groupLeases released transfer movingLeases
    movingRequests fencedLease abortingLeases`,
  // A probe finds the loss, discovery registers the server again, or its callers are answered SERVER_NOT_FOUND.
  'the server, by its registration, probes and discovery': `servers watchedServers pendingServers usableServers eligible
    serverSigns silentServers nextEligible serverVersions serverTokens serverSessions serverChosen lackingServers serverRecords
    serverIndexEntries serverVersionEntries modelLists ring serversWith server warmingServers pausedEngines`,
  // The caller repeats under its id until its deadline.
  'the waiting caller, which repeats its call': `acquireWaiters restrictedLanes rehomedLanes sessionLanes
    acquireDeadlines serverLane acquireTurns claimWaiters claimQueue claimLanes claimDeadlines claimLane claim
    partialOwner rememberedPrompts`,
  // admin-api compares the audit log with Redis (alarm `changes-may-be-lost`), and revokes tokens again. A repeat of a
  // request whose reply is lost is executed again: the audit log has both.
  'the operator, by the alarm of the audit log': `settings settingsHistory jobQuota drainingServers drained rebalance
    aborts abortTombstones abortedAcquires abort abortRows plan planMoves planStates
    credentials replies replyKeys`,
  'the reader of the trajectory, by SET_BACK': 'trajectory trajectories',
  // A lost payload is PAYLOAD_NOT_FOUND, and its tokens are generated again; a payload without an owner is swept.
  'the reader of the payload, and the sweep of orphans': `payloadIndex payloadFreed payloadRegistry freedPayloads
    awaitingPayloads awaitingBytes deployment`,
  // A sequence with a gap shows readers that events are missing.
  'the reader of events, by their sequence': 'events',
  // Such values are measured or written again within seconds, or affect only the next server, the next prompt or saved work.
  'nobody, as nothing that was answered depends on it': `decisions fullDecisions narrowed sessions idleSessions
    blockedJobs claimKinds claimers rebalanceTurn rebalancePlannedAt promptLengths partial partialPieces
    replicas pools poolsAwake failingServers serverKv pausedSessions endedSessions sessionCounts sessionOutlook awaySessions
    sessionFamily`,
};

it('names who learns of the loss of each kind of key, once', () => {
  const text = readFileSync(join(LUA_ROOT, 'library/keys.lua'), 'utf8');
  const [table] = /local NAMES = \{[\s\S]*?\n\}/.exec(text)!;
  const kinds = new Set(
    [
      ...table.matchAll(/^ {2}(\w+) = '/gm),
      ...text.matchAll(/^Keys\.(\w+) = by_/gm),
      ...text.matchAll(/^function Keys:(\w+)\(/gm),
    ].map(([, name]) => name!),
  );
  expect(kinds.size).toBeGreaterThan(100);
  const files = ['apps', 'libs'].flatMap((root) =>
    readdirSync(root, { recursive: true, encoding: 'utf8' }).map((file) => join(root, file)),
  );
  for (const file of files.filter((name) => /\/src\/.*\.ts$/.test(name) && !/\.(spec|fixture)\.ts$/.test(name))) {
    const names = [...readFileSync(file, 'utf8').matchAll(/keyPrefix\}:(?:\{\$\{pool\}\}:)?([\w-]+)/g)];
    // The root of the keys of a payload store ends with `payload`.
    for (const [, name] of names.filter(([, one]) => one !== 'payload')) {
      kinds.add(name!.replace(/-./g, ([, letter]) => letter!.toUpperCase()));
    }
  }
  const named = Object.values(LEARNS_OF_LOSS).flatMap((names) => names.split(/\s+/));
  const missing = [...kinds].filter((kind) => !named.includes(kind));
  expect(missing, 'add these kinds of keys to LEARNS_OF_LOSS of this file').toEqual([]);
  expect(named.toSorted()).toEqual([...kinds].toSorted());
});
