import {
  type Epoch,
  eventSubject,
  type FrontierWhatIf,
  type JobFrontierReply,
  type PoolEvent,
  ROUTES,
  type RoundId,
  type TailPolicy,
} from '@broomwagon/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inEngine, startEngine } from '../lab/engine-simulator/src/test-engine';
import type { SampleIdentity } from '../lab/engine-simulator/src/tokens/sample-identity';
import { AdminApi } from './system/admin-api';
import { ServiceBench } from './system/service-bench';

const JOB = 'job';
type Attempt = Extract<PoolEvent, { type: 'request.finished' | 'attempt.ended' }>;
let bench: ServiceBench;
let api: AdminApi;

beforeAll(async () => {
  bench = await ServiceBench.open({}, 3);
  api = await AdminApi.start(bench.prefix);
});
afterAll(async () => {
  await api?.close();
  await bench?.close();
});

const findRoute = (id: string) => ROUTES.find((route) => (route.id ?? route.operation) === id)!;
const read = (id: string, fields: object = {}) => api.call(findRoute(id), { pool: bench.pool, job: JOB, ...fields });

/** Waits until the timeline of a round has an event of this type. */
async function timelineUntil(roundId: RoundId, type: PoolEvent['type']): Promise<PoolEvent[]> {
  let events: PoolEvent[] = [];
  const types = async (): Promise<string[]> => {
    const { body } = await read('round.timeline', { roundId });
    ({ events } = body as { events: PoolEvent[] });
    return events.map((event) => event.type);
  };
  await expect.poll(types).toContain(type);
  return events;
}

async function submit(roundId: RoundId, trainerEpoch: Epoch, ids: string[]): Promise<void> {
  const groups = ids.map((groupId) => ({ groupId, samples: 1, maxTokens: 8_000, prompt: { text: `Why ${groupId}?` } }));
  await bench.client.call(bench.pool, 'round.submit', { job: JOB, roundId, trainerEpoch, groups });
}

/** Opens the next round; returns the epoch of its trainer and how many groups are new. */
async function open(roundId: RoundId, groupsPerStep: number, remainingGroups: number, policy: TailPolicy) {
  const plan = await bench.client.call(bench.pool, 'round.next', { job: JOB, groupsPerStep, remainingGroups, policy });
  const { choice: _, kind, ...planned } = plan;
  if (kind === 'done') return undefined;
  const opening = { job: JOB, roundId, kind, ...planned, policy, weightVersion: 0 };
  const { trainerEpoch } = await bench.client.call(bench.pool, 'round.open', opening);
  return { trainerEpoch, newGroups: plan.newGroups };
}

/** Waits for the groups of a round and closes it. Returns its trained tokens. */
async function close(roundId: RoundId, trainerEpoch: Epoch): Promise<number> {
  const round = { job: JOB, roundId, trainerEpoch };
  let cursor: string | undefined;
  let tokens = 0;
  for (let complete = false; !complete;) {
    const page = await bench.client.call(bench.pool, 'round.results', { ...round, cursor, waitMs: 1_000 });
    for (const { samples } of page.groups) tokens += samples.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
    ({ cursor, complete } = page);
  }
  await bench.client.call(bench.pool, 'round.close', { ...round, cursor: cursor! });
  return tokens;
}

describe('the timeline of a round', () => {
  let shortTokens: number | undefined;
  /** Endless responses. Once `shortTokens` is set, an attempt of the group `short` ends after that many more tokens. */
  const getLength = ({ promptText, madeTokens }: SampleIdentity): number =>
    promptText?.includes('short') && shortTokens !== undefined ? madeTokens + shortTokens : 8_000;

  it('has each attempt with its phases: a move, a change of weights, a cut', async () => {
    await bench.begin(getLength);
    const other = await startEngine('vllm', { speed: 1, lengths: { name: 'test', getLength } });
    const { client, pool } = bench;
    const registerOther = (weightVersion?: number) =>
      client.call(pool, 'server.register', {
        serverId: 's2',
        endpoint: other.url,
        dialect: 'vllm',
        instanceId: 'i2',
        maxInflight: 64,
        weightVersion,
      });
    await bench.register();
    const policy: TailPolicy = { name: 'resume', overProvision: 2 };
    const { trainerEpoch } = (await open('r1', 1, 2, policy))!;
    await submit('r1', trainerEpoch, ['short', 'long']);
    await bench.startWorker();
    await bench.running(2);
    await bench.made(2);
    await registerOther();
    await client.call(pool, 'rebalance.configure', { maxMovesPerRequest: 2 });
    const move = async (planId: string, targetServerId: string): Promise<void> => {
      const moves = [{ requestId: 'job/short/0', targetServerId }];
      await client.call(pool, 'rebalance.execute', { planId, moves });
      const status = () => client.call(pool, 'rebalance.status', { planId });
      await expect.poll(async () => (await status()).results[0]!.state).toBe('moved');
    };
    const bothRun = () =>
      expect.poll(async () => (await inEngine(bench.engine.url)) + (await inEngine(other.url))).toBe(2);
    await move('first', 's2');
    await bothRun();
    const begin = { syncId: 'sync', version: 2, mode: 'abort' as const, waitMs: 10_000 };
    await client.call(pool, 'weights.begin', begin, { timeoutMs: 20_000 });
    const pausedServers = async () => {
      const { servers } = await client.call(pool, 'weights.status', { cursor: '0' });
      return servers.filter(({ paused }) => paused).length;
    };
    await expect.poll(pausedServers).toBe(2);
    await bench.register({ weightVersion: 2 });
    await registerOther(2);
    await client.call(pool, 'weights.commit', { syncId: 'sync' });
    await timelineUntil('r1', 'weights.committed');
    const { body: early } = await read('round.timeline', { roundId: 'r1' });
    await expect.poll(pausedServers).toBe(0);
    await bothRun();
    const short = () => client.call(pool, 'request.get', { requestId: 'job/short/0' });
    // A running request has a server for this attempt: its worker has reported it.
    await expect.poll(async () => (await short()).state).toBe('running');
    const { serverId } = await short();
    // The short request ends after its next move, while the other one runs and is cut.
    shortTokens = 8;
    await move('second', serverId === 's1' ? 's2' : 's1');
    // A message that is no event is left out.
    const jetstream = client.messaging.connection.nats.jetstream();
    for (const text of ['not json', '{}']) {
      const publish = () => jetstream.publish(eventSubject(pool, 'round.opened'), text);
      await expect
        .poll(() =>
          publish().then(
            () => true,
            () => false,
          ),
        )
        .toBe(true);
    }
    const trained = await close('r1', trainerEpoch);

    const events = await timelineUntil('r1', 'round.settled');
    const attempts = events.filter((event): event is Attempt => 'claimedAtMs' in event);
    const outcomes = (group: string) =>
      attempts
        .filter(({ requestId }) => requestId === `job/${group}/0`)
        .map((attempt) => [
          attempt.type === 'attempt.ended' ? attempt.outcome : 'finished',
          attempt.run?.weightVersion,
        ]);
    expect(outcomes('short')).toEqual([
      ['moved', 0],
      ['stopped', 0],
      ['moved', 2],
      ['finished', 2],
    ]);
    expect(outcomes('long')).toEqual([
      ['stopped', 0],
      ['cut', 2],
    ]);
    expect(attempts.slice(0, 1)).toMatchObject([{ serverId: 's1', run: { serverId: 's1' } }]);
    for (const { queuedAtMs, claimedAtMs, atMs, run } of attempts.filter((attempt) => attempt.run !== undefined)) {
      const times = [0, run!.leasedMs, run!.firstTokenMs ?? run!.leasedMs, run!.endedMs];
      expect(times).toEqual(times.toSorted((one, another) => one - another));
      expect(claimedAtMs).toBeGreaterThanOrEqual(queuedAtMs!);
      expect(atMs).toBeGreaterThanOrEqual(claimedAtMs!);
    }
    const ofShort = attempts.filter(({ requestId }) => requestId === 'job/short/0');
    expect(ofShort.reduce((sum, { attemptTokens }) => sum + attemptTokens, 0)).toBe(trained);
    expect(ofShort.at(-1)).toMatchObject({ tokens: trained });
    expect(events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['round.opened', 'weights.begun', 'weights.committed', 'round.completed']),
    );

    for (const type of ['server.paused', 'server.resumed']) {
      expect(events.filter((event) => event.type === type)).toMatchObject([{ syncId: 'sync' }, { syncId: 'sync' }]);
    }

    const { body: ofOne } = await read('round.timeline', { roundId: 'r1', requestId: 'job/short/0' });
    expect(ofOne.events).toEqual(events.filter((event) => 'requestId' in event && event.requestId === 'job/short/0'));
    expect(ofOne.events.length).toBeGreaterThan(3);
    // A later call reads on after the last event of an earlier one.
    const { body: later } = await read('round.timeline', { roundId: 'r1', cursor: early.position });
    expect([...early.events, ...later.events]).toEqual(events);
    expect(later.missingEvents).toBe(0);
    const exported = await read('timelineExport', { roundId: 'r1' });
    const lines = (exported.body as string).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line) as PoolEvent)).toEqual(events);
    await client.call(pool, 'request.abort', { abortId: 'end', all: true, waitMs: 5_000 });
    await bench.end();
    await other.close();
  });

  it('refuses an unknown round, and an invalid cursor', async () => {
    expect(await read('round.timeline', { roundId: 'none' })).toMatchObject({ status: 404 });
    expect(await read('round.timeline', { job: 'none', roundId: 'r1' })).toMatchObject({ status: 404 });
    expect(await read('round.timeline', { roundId: 'r1', cursor: 'x' })).toMatchObject({ status: 400 });
  });
});

describe('the frontier of a job', () => {
  /** Trains a group of each length; returns the number of steps and of trained tokens. */
  async function train(lengths: number[], groupsPerStep: number, policy: TailPolicy): Promise<[number, number]> {
    await bench.begin(({ promptText }) => lengths[Number(/p(\d+)/.exec(promptText!)![1])]!, 100);
    const ids = lengths.map((_, index) => `p${index}`);
    await bench.register();
    await bench.startWorker();
    let [next, steps, trained] = [0, 0, 0];
    for (;;) {
      const roundId = `r${steps + 1}`;
      const round = await open(roundId, groupsPerStep, ids.length - next, policy);
      if (round === undefined) return [steps, trained];
      if (round.newGroups > 0) await submit(roundId, round.trainerEpoch, ids.slice(next, (next += round.newGroups)));
      trained += await close(roundId, round.trainerEpoch);
      steps += 1;
    }
  }

  /** The reply with this number of recorded groups, checked against its schema. */
  async function frontier(groups: number): Promise<JobFrontierReply> {
    await expect.poll(async () => (await read('job.frontier')).body.recordedGroups).toBe(groups);
    const { body, ...answer } = await read('job.frontier');
    expect(api.fault(findRoute('job.frontier'), { ...answer, body })).toBeUndefined();
    return body as JobFrontierReply;
  }

  const formatPolicyName = ({ policy, overProvision }: FrontierWhatIf): string => `${policy} ${overProvision}`;

  it('shows speed and cost of its steps, and of other policies on its samples', async () => {
    expect(await train([120, 20, 20, 20, 120, 20, 20, 20], 2, { name: 'resume', overProvision: 1.5 })).toEqual([
      4,
      2 * 120 + 6 * 20,
    ]);
    const { steps, whatIf, partialGroups } = await frontier(8);
    expect(steps.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
    expect(whatIf.map(formatPolicyName)).toEqual([
      'resume 1.5',
      'wait 1',
      'regenerate 1.25',
      'regenerate 1.5',
      'resume 1.25',
      'drip 1.25',
      'drip 1.5',
    ]);
    expect(whatIf.find(({ isOwn }) => isOwn)).toMatchObject({ policy: 'resume', steps: 4 });
    expect(partialGroups).toBe(0);
    await bench.end();
  });

  it('replays the choices of `auto` with its name', async () => {
    await train([120, 20, 20, 20], 2, { name: 'auto' });
    const { whatIf } = await frontier(4);
    expect(whatIf.slice(0, 2)).toMatchObject([
      { policy: 'auto', overProvision: 1, isOwn: true, steps: 2 },
      { policy: 'wait', overProvision: 1, isOwn: false },
    ]);
    await bench.end();
  });
});
