// One round with the typed client: a trainer, and a worker that invents its tokens instead of calling an engine.
//
//   NATS_URL=nats://127.0.0.1:4222 POOL=default node one-round.js
import { randomUUID } from 'node:crypto';
import { connect } from 'nats';
import type { Claim, SegmentPayload, TailPolicy } from './protocol';
import { Client } from './typed-client';

interface Worker {
  workerId: string;
  workerEpoch: string;
}

async function main(): Promise<void> {
  const nats = await connect({ servers: process.env.NATS_URL });
  const client = new Client(nats, process.env.POOL ?? 'default');
  const completed = new Promise<number>((resolve) => {
    client.listen('round.completed', ({ acceptedGroups }) => resolve(acceptedGroups));
  });
  await nats.flush();
  const workerId = `worker-${randomUUID()}`;
  // The worker sends no heartbeats, so the whole round must end within its time to live.
  const registration = { workerId, registrationId: randomUUID(), ttlMs: 600_000 };
  const { workerEpoch } = await client.call('worker.register', registration);

  const policy: TailPolicy = { name: 'wait', overProvision: 1 };
  const round = { job: `job-${randomUUID()}`, roundId: 'round-1' };
  const plan = await client.call('round.next', { job: round.job, groupsPerStep: 2, remainingGroups: 2, policy });
  const { planId, step, kind, neededGroups, newGroups, takeGroups } = plan;
  if (kind === 'done') throw new Error('a new job has nothing to train');
  const opened = { ...round, planId, step, kind, neededGroups, newGroups, takeGroups, policy };
  const { trainerEpoch } = await client.call('round.open', opened);
  const groups = ['a', 'b'].map((groupId) => ({
    groupId,
    samples: 2,
    maxTokens: 16,
    prompt: { messages: [{ role: 'user', content: `Say ${groupId}.` }] },
    sampling: { temperature: 1, seed: 7 },
  }));
  await client.call('round.submit', { ...round, trainerEpoch, groups });

  for (;;) {
    const { claims } = await client.call('request.claim', { claimId: randomUUID(), workerId, workerEpoch, max: 8 });
    if (claims.length === 0) break;
    for (const claim of claims) await run(client, { workerId, workerEpoch }, claim);
  }

  const results = await client.call('round.results', { ...round, trainerEpoch });
  const { stepsTrained } = await client.call('round.close', { ...round, trainerEpoch, cursor: results.cursor });
  const samples = results.groups.flatMap((group) => group.samples.map(({ tokenCount }) => tokenCount));
  console.log(JSON.stringify({ stepsTrained, samples, acceptedGroups: await completed }));
  await client.call('worker.deregister', { workerId, workerEpoch });
  await nats.close();
}

/** Runs one request: acquires a lease, stores the tokens as a payload, completes the request and releases the lease. */
async function run(client: Client, worker: Worker, { job, requestId, attempt }: Claim): Promise<void> {
  const lease = await client.call('lb.acquire', { acquireId: randomUUID(), requestId, ...worker, waitMs: 20_000 });
  const tokens: SegmentPayload = { tokenIds: [1, 2, 3], text: 'one two three' };
  const data = Buffer.from(JSON.stringify(tokens)).toString('base64');
  const stored = { job, requestId, name: attempt, chunkIndex: 0, chunkCount: 1, data };
  const { ref } = await client.call('payload.put', stored);
  if (ref === undefined) throw new Error('the payload has one chunk');
  const { serverId, epoch: serverEpoch, weightVersion, leaseId } = lease;
  const segment = { attempt, serverId, serverEpoch, weightVersion, tokenCount: 3, ref };
  await client.call('request.complete', { requestId, attempt, ...worker, finishReason: 'stop', segment });
  await client.call('lb.release', { leaseId, outcome: 'finished', tokens: 3 });
}

void main();
