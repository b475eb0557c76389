// A complete trainer that uses only JSON and a NATS client, or HTTP: no code of Broomwagon, no Redis.
//
//   NATS_URL=nats://127.0.0.1:4222 node docs/protocol/examples/trainer.mjs --job demo --prompts 20 --out results/
//   GATEWAY_URL=http://127.0.0.1:30000 GATEWAY_KEY=... node docs/protocol/examples/trainer.mjs ...
//
// GATEWAY_URL may name several replicas of a gateway, separated by commas. Only a call over NATS needs the package
// nats.
//
// The trainer rolls out its data step by step and writes one file per step. It may be killed at any moment and started
// again (here or elsewhere): then it takes over the job, fences the previous trainer, and continues after the last
// trained step.
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    pool: { type: 'string', default: 'default' },
    job: { type: 'string', default: 'example' },
    prompts: { type: 'string', default: '20' },
    groups: { type: 'string', default: '4' },
    samples: { type: 'string', default: '2' },
    'over-provision': { type: 'string', default: '1.5' },
    'tail-policy': { type: 'string', default: 'resume' },
    'max-version-span': { type: 'string' },
    concurrency: { type: 'string' },
    'max-tokens': { type: 'string', default: '16384' },
    seed: { type: 'string' },
    'on-failed': { type: 'string', default: 'warn' },
    out: { type: 'string', default: 'results' },
  },
});
const { pool, job, out } = options;
if (!['warn', 'raise'].includes(options['on-failed'])) throw new Error('--on-failed is warn or raise');
const groupsPerStep = Number(options.groups);
// A step without a group that failed for good is accepted; `replace` would wait for another group.
const policy = {
  name: options['tail-policy'],
  // `auto` chooses the over-provision itself.
  overProvision: options['tail-policy'] === 'auto' ? undefined : Number(options['over-provision']),
  maxVersionSpan: options['max-version-span'] && Number(options['max-version-span']),
  concurrency: options.concurrency && Number(options.concurrency),
  shortfall: 'accept-fewer',
};
const data = Array.from({ length: Number(options.prompts) }, (_, index) => ({
  groupId: `prompt-${index}`,
  samples: Number(options.samples),
  maxTokens: Number(options['max-tokens']),
  prompt: { text: `Problem ${index}: what is ${index} times ${index + 1}? Think step by step.` },
  sampling: { temperature: 1, ...(options.seed && { seed: Number(options.seed) }) },
}));

const TIMEOUT_MS = 5_000;

async function connectNats() {
  const { connect, headers: makeHeaders } = await import('nats');
  const servers = (process.env.NATS_URL ?? 'nats://127.0.0.1:4222').split(',');
  // nats.js ignores the scheme: without `tls` it would use plain text with a server that has no TLS.
  const tls = servers.some((server) => server.startsWith('tls://')) ? { caFile: process.env.NATS_TLS_CA } : undefined;
  const { NATS_USER: user, NATS_PASSWORD: pass, NATS_INBOX_PREFIX: inboxPrefix } = process.env;
  const connection = await connect({ servers, tls, user, pass, inboxPrefix, name: 'example-trainer' });
  const headers = makeHeaders();
  headers.set('Broomwagon-Timeout-Ms', String(TIMEOUT_MS));
  let clockOffsetMs = 0;
  return {
    async send(operation, body) {
      headers.set('Broomwagon-Sent-At-Ms', String(Date.now() + clockOffsetMs));
      const subject = `rollout.v1.${pool}.${operation}`;
      // A JetStream stream over these subjects acknowledges each request; only a service names its replica.
      for await (const message of await connection.requestMany(subject, body, { maxWait: TIMEOUT_MS, headers })) {
        if (!message.headers?.has('Broomwagon-Replica')) continue;
        // A service whose clock differs refuses the call as too late, and names its time; the repeat succeeds.
        const readAtMs = Number(message.headers.get('Broomwagon-Read-At-Ms'));
        if (readAtMs) clockOffsetMs = readAtMs - Date.now();
        return message.json();
      }
      throw new Error(`No reply of a service to ${subject} within ${TIMEOUT_MS} ms`);
    },
    close: () => connection.drain(),
  };
}

/** Calls a gateway; after a call without an answer, the next call goes to the next replica. */
function useGateway(urls, key) {
  const headers = { 'Content-Type': 'application/json', ...(key && { Authorization: `Bearer ${key}` }) };
  let failures = 0;
  return {
    async send(operation, body) {
      const url = `${urls[failures % urls.length]}/rounds/v1/${pool}/${operation}`;
      try {
        const answer = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(TIMEOUT_MS) });
        return await answer.json();
      } catch (error) {
        failures += 1;
        throw error;
      }
    },
    async close() {},
  };
}

const { GATEWAY_URL, GATEWAY_KEY } = process.env;
const connection = GATEWAY_URL ? useGateway(GATEWAY_URL.split(','), GATEWAY_KEY) : await connectNats();

/** Stamp of the last reply. With it, a call is answered GENERATION_CHANGED if Redis has lost later changes. */
let stamp;

/** One call of the protocol. Commands are idempotent, so it repeats after a retryable error or a lost reply. */
async function call(operation, about, deadlineMs = 60_000) {
  const giveUpAt = Date.now() + deadlineMs;
  const isStamped = /^round\.(?!takeover)|^job\.reconcile/.test(operation);
  const body = isStamped ? { ...about, stamp } : about;
  for (let attempt = 0; ; attempt += 1) {
    let error;
    try {
      const reply = await connection.send(operation, JSON.stringify(body));
      if (!reply.error) {
        stamp = reply.stamp ?? stamp;
        return reply;
      }
      const { message: reason, ...about } = reply.error;
      error = Object.assign(new Error(`${operation}: ${about.code}: ${reason}`), about);
    } catch (cause) {
      error = Object.assign(new Error(`${operation}: ${cause.message}`, { cause }), {
        code: cause.code,
        retryable: true,
      });
    }
    if (!error.retryable || Date.now() > giveUpAt) throw error;
    await delay(error.retryAfterMs ?? Math.min(2_000, 50 * 2 ** attempt * (0.5 + Math.random())));
  }
}

/** File of a trained step: the groups of the step, the lost groups, and all ids submitted until then. */
const fileOf = (step) => join(out, `step-${step}.json`);
const heldSteps = () => {
  const steps = [];
  while (existsSync(fileOf(steps.length + 1))) {
    steps.push(JSON.parse(readFileSync(fileOf(steps.length + 1), 'utf8')));
  }
  return steps;
};

let trainerEpoch;
/** Id of the last takeover; a job that the takeover did not find is created with it. */
let takeoverId;
let round;
/** Ids of all groups known to be submitted, trained ones included. */
let submitted;

/**
 * Takes the job over and reconciles Redis with this trainer: at the start, and when Redis has lost its last changes. A
 * step with a file is trained, whatever Redis has; for everything else the state in Redis decides.
 */
async function takeOver() {
  stamp = undefined;
  takeoverId = randomUUID();
  const found = await call('round.takeover', { job, takeoverId }).catch((error) => {
    if (error.code === 'JOB_NOT_FOUND') {
      stamp = error.details?.stamp;
      return { stepsTrained: 0 };
    }
    throw error;
  });
  ({ trainerEpoch } = found);
  let openRoundId = found.round?.roundId;
  const reconcile = async (body) => {
    const reply = await call('job.reconcile', { job, trainerEpoch, takeoverId, ...body });
    ({ trainerEpoch, openRoundId } = reply);
    return reply;
  };
  const held = heldSteps();
  for (const { step, groups } of held.slice(found.stepsTrained)) {
    console.error(`Redis does not know that step ${step} is trained; reconciling it`);
    const trained = groups.map(({ groupId, samples }) => ({ groupId, samples: samples.length }));
    for (let start = 0; start === 0 || start < trained.length; start += 1_024) {
      const page = trained.slice(start, start + 1_024);
      await reconcile({ step, groups: page, isLast: start + 1_024 >= trained.length });
    }
  }
  // Redis has all steps that it counts. A query returns the later groups that it does not know.
  submitted = new Set(held[found.stepsTrained - 1]?.submitted);
  for (const { groups } of held) for (const { groupId } of groups) submitted.add(groupId);
  const asked = trainerEpoch ? data.map(({ groupId }) => groupId).filter((groupId) => !submitted.has(groupId)) : [];
  for (let start = 0; start < asked.length; start += 1_024) {
    const page = asked.slice(start, start + 1_024);
    const unknown = new Set((await reconcile({ groupIds: page })).unknown);
    for (const groupId of page) if (!unknown.has(groupId)) submitted.add(groupId);
    // Groups are submitted in the order of the data, so all later ones are unknown too.
    if (unknown.size === page.length) break;
  }
  round = openRoundId ? await call('round.status', { job, roundId: openRoundId, trainerEpoch }) : undefined;
}

/** Opens the next round; undefined if all groups are trained. */
async function openRound() {
  const remainingGroups = data.length - submitted.size;
  const plan = await call('round.next', { job, groupsPerStep, remainingGroups, policy, trainerEpoch });
  if (plan.kind === 'done') return undefined;
  // If several trainers found no job, one creates it; the others are answered FENCED.
  if (!trainerEpoch) ({ trainerEpoch } = await call('job.reconcile', { job, takeoverId, groupIds: [] }));
  const { step, kind, planId, neededGroups, newGroups, takeGroups } = plan;
  const roundId = `step-${step}`;
  const open = { job, roundId, planId, step, kind, neededGroups, newGroups, takeGroups, policy };
  ({ trainerEpoch } = await call('round.open', { ...open, trainerEpoch }));
  return call('round.status', { job, roundId, trainerEpoch });
}

/** Submits the groups that the round still needs, in the order of the data. */
async function submitRest({ roundId, newGroups, roundGroups, takenGroups, state }) {
  if (state !== 'open' && state !== 'opening') return;
  let missing = newGroups - (roundGroups - takenGroups);
  const fresh = data.filter(({ groupId }) => !submitted.has(groupId));
  while (missing > 0 && fresh.length > 0) {
    const groups = fresh.splice(0, Math.min(missing, 32));
    await call('round.submit', { job, roundId, trainerEpoch, groups });
    for (const { groupId } of groups) submitted.add(groupId);
    missing -= groups.length;
  }
}

async function fetchPayload(ref) {
  const first = await call('payload.get', { ref });
  const chunks = [Buffer.from(first.data, 'base64')];
  for (let chunkIndex = 1; chunkIndex < first.chunkCount; chunkIndex += 1) {
    chunks.push(Buffer.from((await call('payload.get', { ref, chunkIndex })).data, 'base64'));
  }
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}

/** Segments of a sample. Usually the sample contains them; after hundreds of cuts they do not fit a message. */
async function segmentsOf({ segments, segmentsFollow, requestId }) {
  if (!segmentsFollow) return segments;
  const all = [];
  for (let cursor = 0; cursor !== undefined;) {
    const page = await call('request.segments', { requestId, cursor });
    all.push(...page.segments);
    ({ cursor } = page);
  }
  return all;
}

/** Adds ids and text of a sample, and the oldest and newest weight version of its tokens or, without any, its round. */
async function readSample(sample, roundWeightVersion) {
  const segments = await segmentsOf(sample);
  sample.tokens = [];
  sample.text = '';
  for (const { ref } of segments) {
    const { tokenIds = [], text = '' } = await fetchPayload(ref);
    sample.tokens.push(...tokenIds);
    sample.text += text;
  }
  const versions = segments.flatMap(({ weightVersion, toWeightVersion = weightVersion }) => [
    weightVersion,
    toWeightVersion,
  ]);
  if (versions.length === 0) versions.push(roundWeightVersion);
  sample.weightVersions = [Math.min(...versions), Math.max(...versions)];
}

/** Reads groups as they are accepted, until the round is complete. The last cursor proves which groups were read. */
async function readResults({ roundId, weightVersion }) {
  const groups = [];
  for (let cursor; ;) {
    const page = await call('round.results', { job, roundId, cursor, trainerEpoch, waitMs: 4_000 });
    for (const group of page.groups) {
      for (const sample of group.samples) await readSample(sample, weightVersion);
      groups.push(group);
    }
    cursor = page.cursor;
    if (page.complete) return { groups, cursor };
  }
}

/** Ids of all groups whose end was printed. */
const printed = new Set();

/**
 * Groups that ended without training: failed, or dropped by an abort or a timeout. Printed with their reasons. Without a
 * round: groups that ended after the last step.
 */
async function readLost(roundId) {
  const lost = [];
  for (let cursor = 0; cursor !== undefined;) {
    const page = await call('group.list', { job, roundId, set: 'lost', cursor }).catch((error) => {
      if (error.code !== 'ROUND_NOT_FOUND' || roundId) throw error;
      return { groups: [] };
    });
    lost.push(...page.groups);
    ({ cursor } = page);
  }
  for (const { groupId, state, reason, message, requestId } of lost) {
    if (printed.has(groupId)) continue;
    printed.add(groupId);
    console.error(`Group ${groupId} ${state}: ${reason} ${requestId ?? ''} ${message ?? ''}`);
  }
  return lost.map(({ groupId, state, reason, requestId }) => ({ groupId, state, reason, requestId }));
}

/** One training step. False if all groups are trained. */
async function trainStep() {
  round ??= await openRound();
  if (!round) {
    if (trainerEpoch) await readLost();
    return false;
  }
  const { roundId, step, kind } = round;
  await submitRest(round);
  const { groups, cursor } = await readResults(round);
  const lost = await readLost(roundId);
  if (lost.length > 0 && options['on-failed'] === 'raise') {
    throw new Error(`Step ${step} has lost ${lost.length} groups and is not trained (--on-failed raise)`);
  }
  // "Training" writes the batch of the step to a file, atomically. After a crash it writes the same file again.
  // The temporary name contains the epoch, because a fenced trainer may continue here.
  const part = `${fileOf(step)}.${trainerEpoch}.part`;
  writeFileSync(part, JSON.stringify({ step, groups, lost, submitted: [...submitted] }));
  renameSync(part, fileOf(step));
  const { stepsTrained } = await call('round.close', { job, roundId, trainerEpoch, cursor });
  console.log(JSON.stringify({ step, kind, groups: groups.length, stepsTrained }));
  round = undefined;
  return true;
}

/** Whether Redis has lost changes, and with them perhaps a payload or the round: the status of the round says so. */
async function hasLost({ code }) {
  if (code === 'GENERATION_CHANGED' || code === 'ROUND_MISMATCH') return true;
  if (code === undefined) return false;
  return call('round.status', { job, trainerEpoch }).then(
    () => false,
    (cause) => cause.code === 'GENERATION_CHANGED',
  );
}

function sayMissing() {
  const held = new Set(heldSteps().flatMap(({ groups }) => groups.map(({ groupId }) => groupId)));
  const missing = data.map(({ groupId }) => groupId).filter((groupId) => !held.has(groupId));
  if (missing.length === 0) return;
  console.error(`Not trained: ${missing.join(' ')}`);
  process.exitCode = 1;
}

mkdirSync(out, { recursive: true });
for (let goesOn = true, isKnown = false; goesOn;) {
  try {
    if (!isKnown) await takeOver();
    isKnown = true;
    goesOn = await trainStep();
  } catch (error) {
    if (!(await hasLost(error))) {
      sayMissing();
      throw error;
    }
    console.error(`${error.message}; trained steps are kept, the rest is read again`);
    isKnown = false;
  }
}
sayMissing();
await connection.close();
