// A seeded sequence of operations, one at a time, as a router's client, a trainer and a worker send them. Two builds
// that behave alike give the same replies; random values of a reply (epochs, stamps, times) are replaced by names.
import { setTimeout as delay } from 'node:timers/promises';

const RANDOM_KEYS = new Set(
  'epoch workerEpoch serverEpoch trainerEpoch stamp attempt planId abortId cursor digest generation'.split(' '),
);
const TIME_KEYS = /(AtMs|sinceMs|[aA]geMs|TimeMs)$/;
/** Lists in the order of a hash. */
const UNORDERED_KEYS = new Set(['items', 'held']);
const POLICIES = ['least-inflight', 'least-tokens', 'least-sessions', 'round-robin', 'consistent-hash'];
const TAILS = [
  { name: 'wait', overProvision: 1 },
  { name: 'resume', overProvision: 1.5 },
  { name: 'regenerate', overProvision: 2 },
  { name: 'resume', overProvision: 2, maxCuts: 1 },
];

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
function randomOf(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const idOf = ({ id, leaseId }) => id ?? leaseId;

/** Replaces random values by names in the order of their first appearance. */
class Names {
  names = new Map();

  of(value, key = '') {
    if (typeof value === 'number') return TIME_KEYS.test(key) ? '<time>' : value;
    if (typeof value === 'string') return this.ofText(value, key);
    if (Array.isArray(value)) {
      const items = value.map((item) => this.of(item, key));
      return UNORDERED_KEYS.has(key) ? items.toSorted((one, other) => (idOf(one) < idOf(other) ? -1 : 1)) : items;
    }
    if (value === null || typeof value !== 'object') return value;
    const entries = Object.entries(value).filter(([name]) => name !== 'message' && name !== 'reference');
    return Object.fromEntries(entries.map(([name, item]) => [name, this.of(item, name)]).toSorted());
  }

  ofText(text, key) {
    if (RANDOM_KEYS.has(key) && !this.names.has(text)) this.names.set(text, `<${key}-${this.names.size}>`);
    if (key === 'promptRef') return text.replace(/prompt\..*/, 'prompt');
    return this.names.get(text) ?? text.replaceAll(/[\w-]{6,}/g, (part) => this.names.get(part) ?? part);
  }
}

/** @param send (operation, body) => the reply, an error of the protocol included */
export async function play(send, seed, steps) {
  const random = randomOf(seed);
  const names = new Names();
  const log = [];
  const call = async (operation, body) => {
    const reply = await send(operation, body);
    const { leases: held, ...rest } = reply;
    log.push({ operation, reply: names.of(operation === 'lb.leases' ? { ...rest, held } : reply) });
    return reply;
  };
  const player = { call, send, random, below: (count) => Math.floor(random() * count) };
  player.oneOf = (items) => items[player.below(items.length)];
  await playRouting(player, steps);
  for (const [index, policy] of TAILS.entries()) await playJob(player, `job-${index}`, policy);
  return log;
}

async function playRouting(player, steps) {
  const { call, below, oneOf, random } = player;
  const servers = ['a', 'b', 'c', 'd'];
  const workers = [];
  const leases = [];
  let acquires = 0;
  for (const workerId of ['v', 'w']) {
    workers.push({
      workerId,
      workerEpoch: (await call('worker.register', { workerId, registrationId: 'r', ttlMs: 600_000 })).workerEpoch,
    });
  }
  for (const worker of workers) worker.workerEpoch ??= 'unknown';
  const epochs = ['unknown'];
  const register = async (serverId) => {
    const { epoch } = await call('server.register', {
      serverId,
      endpoint: `http://127.0.0.1:1/${serverId}`,
      instanceId: `${serverId}-${below(2)}`,
      dialect: oneOf(['vllm', 'sglang', 'openai']),
      maxInflight: 1 + below(4),
      weight: 1 + below(3),
      weightVersion: below(3),
      labels: { zone: oneOf(['x', 'y']) },
      probe: false,
    });
    epochs.push(epoch);
  };
  for (const serverId of servers) await register(serverId);
  const item = () => ({
    acquireId: `acquire-${random() < 0.1 ? below(acquires + 1) : (acquires += 1)}`,
    requestId: `request-${below(20)}`,
    ...(random() < 0.5 && { sessionId: `session-${below(5)}` }),
    ...(random() < 0.3 && { groupId: `group-${below(3)}` }),
    ...(random() < 0.2 && { contextTokens: 1_000 * below(5) }),
    ...(random() < 0.1 && { weightVersion: below(3) }),
    ...(random() < 0.1 && { minWeightVersion: below(3) }),
    ...(random() < 0.1 && { maxWeightLag: below(2) }),
    ...(random() < 0.1 && { excludeServers: [oneOf(servers)] }),
    ...(random() < 0.1 && { labels: { zone: oneOf(['x', 'y', 'z']) } }),
    ...(random() < 0.1 && { dpRank: below(4) }),
    ...(random() < 0.1 && { boundServerId: oneOf(servers) }),
    ...(random() < 0.1 && { explain: true }),
  });
  const kept = (acquired, worker) => {
    if (acquired.leaseId) leases.push({ leaseId: acquired.leaseId, acquireId: acquired.acquireId, worker });
  };
  const pick = () => (leases.length > 0 ? leases.splice(below(leases.length), 1)[0] : { leaseId: '1.unknown' });
  const outcome = () => oneOf(['finished', 'finished', 'failed', 'rejected', 'aborted']);
  const actions = [
    ...Array(10).fill(async () => {
      const [worker, acquire] = [oneOf(workers), item()];
      kept({ ...(await call('lb.acquire', { ...acquire, ...worker })), acquireId: acquire.acquireId }, worker);
    }),
    ...Array(8).fill(() => call('lb.release', { leaseId: pick().leaseId, outcome: outcome(), tokens: below(500) })),
    async () => {
      const worker = oneOf(workers);
      const acquires = Array.from({ length: 1 + below(6) }, item).map(({ acquireId, requestId }) => ({
        acquireId,
        requestId,
      }));
      const reply = await call('lb.acquire-many', { ...worker, acquires });
      for (const lease of reply.leases ?? []) kept(lease, worker);
    },
    () => {
      const releases = [pick(), pick()].map(({ leaseId }) => ({ leaseId, outcome: outcome() }));
      return call('lb.release-many', { releases });
    },
    () => call('lb.release', { acquireId: `acquire-${below(acquires + 3)}`, outcome: 'aborted' }),
    () => {
      const lease = pick();
      if (lease.worker) leases.push(lease);
      const worker = lease.worker ?? workers[0];
      const about = { leaseId: lease.leaseId, ...worker, targetServerId: oneOf(servers) };
      return call('lb.transfer', { transferId: `transfer-${below(1_000)}`, ...about });
    },
    () => call('lb.cancel', { acquireId: `acquire-${below(acquires + 3)}`, ...oneOf(workers) }),
    () => call('lb.finish-session', { sessionId: `session-${below(6)}` }),
    () => call('lb.status', {}),
    () => call('lb.decisions', { limit: 3, ...(random() < 0.3 && { full: true }) }),
    () => call('lb.leases', {}),
    () => call('server.list', {}),
    () => call('worker.list', {}),
    () => call('pool.settings', {}),
    () => call('pool.configure', { policy: oneOf(POLICIES), ...(random() < 0.3 && { affinityBreakMargin: below(3) }) }),
    () => call('pool.configure', { groupPlacement: oneOf(['group-spread', 'group-affinity', 'auto', 'nowhere']) }),
    async () => {
      await call('pool.pause', {});
      await call('lb.acquire', { ...item(), ...oneOf(workers) });
      await call('pool.resume', {});
    },
    () => register(oneOf(servers)),
    () => call('server.heartbeat', { serverId: oneOf([...servers, 'nobody']), epoch: oneOf(epochs) }),
    () => call('server.update', { serverId: oneOf(servers), weight: 1 + below(4), maxInflight: 1 + below(5) }),
    () => call('server.cordon', { serverId: oneOf(servers) }),
    () => call('server.uncordon', { serverId: oneOf(servers) }),
    () => call('server.remove', { serverId: oneOf(servers) }),
    () => call('worker.heartbeat', { ...oneOf(workers), leaseCount: 0, leaseDigest: 0, attemptCount: 0 }),
    () => call('worker.sync', { ...oneOf(workers), kind: 'leases' }),
    () => call('lb.acquire', { acquireId: 'x y', requestId: 1, ...oneOf(workers) }),
    () => call('lb.release', { outcome: 'unknown' }),
    () => call('lb.acquire', { ...item(), ...workers[0], workerEpoch: 'another' }),
  ];
  for (let step = 0; step < steps; step += 1) await oneOf(actions)();
  for (const { leaseId } of leases) await call('lb.release', { leaseId, outcome: 'finished' });
  await call('lb.clear-sessions', {});
  for (const serverId of servers) await call('server.remove', { serverId });
  await call('lb.status', {});
}

/** A job with three steps; its samples end in every way there is. */
async function playJob(player, job, tail) {
  const { call, send, below, random } = player;
  const worker = { workerId: `worker-of-${job}` };
  worker.workerEpoch = (await call('worker.register', { ...worker, registrationId: 'r', ttlMs: 600_000 })).workerEpoch;
  const policy = { ...tail, shortfall: 'accept-fewer' };
  const groups = 12;
  let submitted = 0;
  let trained = 0;
  let trainer = {};
  for (let step = 1; ; step += 1) {
    const remainingGroups = groups - submitted;
    const next = await call('round.next', { job, groupsPerStep: 3, remainingGroups, policy, ...trainer });
    if (next.kind === 'done' || next.error) break;
    const { planId, kind, neededGroups, newGroups, takeGroups } = next;
    const round = { job, roundId: `${job}-step-${step}` };
    const plan = { planId, step: next.step, kind, neededGroups, newGroups, takeGroups };
    const opened = await call('round.open', { ...round, ...plan, policy, ...trainer });
    trainer = { trainerEpoch: opened.trainerEpoch };
    await until(async () => (await send('round.status', round)).state !== 'opening');
    const page = Array.from({ length: newGroups }, (_, index) => ({
      groupId: `group-${submitted + index}`,
      samples: 2,
      maxTokens: 100,
      prompt: { text: `prompt ${submitted + index}` },
      ...(random() < 0.3 && { minSamples: 1 }),
    }));
    if (page.length > 0) await call('round.submit', { ...round, ...trainer, groups: page });
    if (page.length > 0) await call('round.submit', { ...round, ...trainer, groups: page });
    submitted += newGroups;
    await call('round.status', round);
    await playAttempts(player, round, worker, step);
    await until(async () => (await send('round.status', round)).settled);
    await call('round.status', round);
    const results = await call('round.results', round);
    await call('longtail.list', { job });
    await call('job.status', { job });
    await call('round.close', { ...round, ...trainer, cursor: 'g.1.2' });
    const closed = await call('round.close', { ...round, ...trainer, cursor: results.cursor });
    trained += closed.trainedRequests;
    await until(async () => {
      const { requests } = await send('job.status', { job });
      return requests.trained === trained;
    });
    await call('job.status', { job });
    await call('prompt.remember', { prompts: [{ promptId: `p-${step}`, lengths: [below(50), 7], atCap: false }] });
  }
  await call('job.ledger', { job });
  await call('pool.ledger', {});
  await call('prompt.lengths', { promptIds: ['p-1', 'p-2', 'nobody'] });
  await call('longtail.stats', { job });
  await call('round.takeover', { job, takeoverId: 'again' });
  trainer = { trainerEpoch: (await call('round.takeover', { job, takeoverId: 'again' })).trainerEpoch };
  await call('longtail.drop', { job, all: true, reason: 'over', ...trainer });
  await call('job.delete', { job, force: true });
  await call('worker.deregister', worker);
}

async function playAttempts({ call, send, below, random }, round, worker, step) {
  for (let turn = 0; turn < 60; turn += 1) {
    if ((await send('round.status', round)).state !== 'open') break;
    const claimed = await call('request.claim', { claimId: `${round.roundId}-${turn}`, ...worker, max: 1 + below(3) });
    if (claimed.claims.length === 0) await endHeld(send, call, worker);
    for (const { requestId, attempt, segments } of claimed.claims) {
      const about = { requestId, attempt, ...worker };
      const tokenCount = 1 + below(20);
      const data = Buffer.from(JSON.stringify({ text: 'x'.repeat(tokenCount) })).toString('base64');
      const chunk = { requestId, name: attempt, chunkIndex: 0, chunkCount: 1, data };
      const { ref } = await call('payload.put', { job: round.job, ...chunk });
      const segment = { attempt, serverId: 'a', serverEpoch: 'e1', weightVersion: 0, tokenCount, ref };
      if (segments.length > 0) await call('payload.get', { ref: segments[0].ref });
      const chance = random();
      if (chance < 0.2) await call('request.save', { ...about, segment });
      else if (chance < 0.3) await call('request.save', { ...about, serverId: 'a' });
      const end = random();
      if (end < 0.7) await call('request.complete', { ...about, finishReason: 'stop', segment });
      else if (end < 0.8) await call('request.fail', { ...about, reason: 'engine-error', retryable: true });
      else if (end < 0.9) await call('request.fail', { ...about, reason: 'shutdown', retryable: true, segment });
      else if (end < 0.95) await call('request.complete', { ...about, attempt: '9-x', finishReason: 'stop', segment });
      else await call('request.complete', { ...about, finishReason: 'length', segment });
    }
  }
  await endHeld(send, call, worker);
  await call('request.list', { job: round.job });
  await call('round.results', { ...round, limit: step });
}

/** Gives back the attempts that the worker still has. In an open round their requests are pending again, else cut. */
async function endHeld(send, call, worker) {
  const { items } = await send('worker.sync', { ...worker, kind: 'attempts' });
  for (const { id, attempt } of items.toSorted((one, other) => (one.id < other.id ? -1 : 1))) {
    await call('request.fail', { requestId: id, attempt, ...worker, reason: 'aborted', retryable: true });
  }
}

async function until(isTrue) {
  const giveUpAt = Date.now() + 30_000;
  while (!(await isTrue())) {
    if (Date.now() > giveUpAt) throw new Error('the services do not come to rest');
    await delay(20);
  }
}
