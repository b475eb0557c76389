// A whole trainer against the plain protocol: a NATS client, JSON, nothing of Broomwagon's code, no Redis.
//
//   NATS_URL=nats://127.0.0.1:4222 node docs/protocol/examples/trainer.mjs --job demo --prompts 20 --out results/
//
// It rolls out its data step by step and writes one file a step. Kill it at any moment and start it again
// (here or elsewhere): it takes over, fences the one before, and goes on where the books say it was.
import { randomUUID } from 'node:crypto';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connect } from 'nats';

const { values: options } = parseArgs({
  options: {
    pool: { type: 'string', default: 'default' },
    job: { type: 'string', default: 'example' },
    prompts: { type: 'string', default: '20' },
    groups: { type: 'string', default: '4' },
    samples: { type: 'string', default: '2' },
    'over-provision': { type: 'string', default: '1.5' },
    'tail-policy': { type: 'string', default: 'resume' },
    'max-tokens': { type: 'string', default: '16384' },
    seed: { type: 'string' },
    out: { type: 'string', default: 'results' },
  },
});
const { pool, job, out } = options;
const groupsPerStep = Number(options.groups);
// A group that fails for good is left out of its step; `replace` would wait for another one in its place.
const policy = {
  name: options['tail-policy'],
  overProvision: Number(options['over-provision']),
  shortfall: 'accept-fewer',
};
const data = Array.from({ length: Number(options.prompts) }, (_, index) => ({
  groupId: `prompt-${index}`,
  samples: Number(options.samples),
  maxTokens: Number(options['max-tokens']),
  prompt: { text: `Problem ${index}: what is ${index} times ${index + 1}? Think step by step.` },
  sampling: { temperature: 1, ...(options.seed && { seed: Number(options.seed) }) },
}));

const servers = process.env.NATS_URL ?? 'nats://127.0.0.1:4222';
// nats.js takes no notice of the scheme: without `tls` it would speak plain text to a server that has no TLS.
const tls = servers.startsWith('tls://') ? { caFile: process.env.NATS_TLS_CA } : undefined;
const connection = await connect({
  servers,
  tls,
  user: process.env.NATS_USER,
  pass: process.env.NATS_PASSWORD,
  name: 'example-trainer',
});

/** One call of the protocol. Every command may be repeated, so a retryable error or a lost reply is just sent again. */
async function call(operation, body, deadlineMs = 60_000) {
  const giveUpAt = Date.now() + deadlineMs;
  for (let attempt = 0; ; attempt += 1) {
    let error;
    try {
      const message = await connection.request(`rollout.v1.${pool}.${operation}`, JSON.stringify(body), {
        timeout: 5_000,
      });
      const reply = message.json();
      if (!reply.error) return reply;
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

/** Says who drives the job from now on, and learns where it stands. A new job answers JOB_NOT_FOUND. */
async function takeOver() {
  try {
    return await call('round.takeover', { job, takeoverId: randomUUID() });
  } catch (error) {
    if (error.code === 'JOB_NOT_FOUND') return { stepsTrained: 0, submittedGroups: 0 };
    throw error;
  }
}

let { trainerEpoch, stepsTrained, submittedGroups, round } = await takeOver();

/** Opens the next round, or nothing when all is trained. */
async function openRound() {
  const remainingGroups = data.length - submittedGroups;
  const plan = await call('round.next', { job, groupsPerStep, remainingGroups, policy, trainerEpoch });
  if (plan.kind === 'done') return undefined;
  const { step, kind, planId, neededGroups, newGroups, takeGroups } = plan;
  const roundId = `step-${step}`;
  const open = { job, roundId, planId, step, kind, neededGroups, newGroups, takeGroups, policy };
  ({ trainerEpoch } = await call('round.open', { ...open, trainerEpoch }));
  return call('round.status', { job, roundId, trainerEpoch });
}

/** Submits what the round still lacks; the data is in order, so the count of submitted groups is the position. */
async function submitRest({ roundId, newGroups, roundGroups, takenGroups, state }) {
  if (state !== 'open' && state !== 'opening') return;
  let missing = newGroups - (roundGroups - takenGroups);
  while (missing > 0) {
    const groups = data.slice(submittedGroups, submittedGroups + Math.min(missing, 32));
    if (groups.length === 0) return;
    await call('round.submit', { job, roundId, trainerEpoch, groups });
    submittedGroups += groups.length;
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

/** Nearly always they are in the sample; a sample that was cut hundreds of times has too many for a message. */
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

/** Reads groups as they are accepted, until the round is complete. The cursor of the last page proves what was read. */
async function readResults(roundId) {
  const groups = [];
  for (let cursor; ;) {
    const page = await call('round.results', { job, roundId, cursor, trainerEpoch, waitMs: 4_000 });
    for (const group of page.groups) {
      for (const sample of group.samples) {
        sample.tokens = [];
        for (const segment of await segmentsOf(sample))
          sample.tokens.push(...((await fetchPayload(segment.ref)).tokenIds ?? []));
      }
      groups.push(group);
    }
    cursor = page.cursor;
    if (page.complete) return { groups, cursor };
  }
}

mkdirSync(out, { recursive: true });
for (;;) {
  round ??= await openRound();
  if (!round) break;
  await submitRest(round);
  const { groups, cursor } = await readResults(round.roundId);
  // "Training": the step's batch, written whole or not at all. Done twice after a crash, it is the same file.
  const file = join(out, `step-${round.step}.json`);
  // Under a name of its own until then: a trainer that was taken over may wake up here.
  const part = `${file}.${trainerEpoch}.part`;
  writeFileSync(part, JSON.stringify({ step: round.step, groups }));
  renameSync(part, file);
  ({ stepsTrained } = await call('round.close', { job, roundId: round.roundId, trainerEpoch, cursor }));
  console.log(JSON.stringify({ step: round.step, kind: round.kind, groups: groups.length, stepsTrained }));
  round = undefined;
}
await connection.drain();
