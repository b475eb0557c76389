import { type ExplainRoundReply, ROUTES } from '@broomwagon/contracts';
import { ENGINE_PRESETS } from '@broomwagon/models';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { inject, startEngine } from '../lab/engine-simulator/src/test-engine';
import { AdminApi } from './system/admin-api';
import { CommandLine } from './system/command-line';
import { ServiceBench } from './system/service-bench';

const JOB = 'job';
const ROUND = { job: JOB, roundId: 'r1' };
const LENGTHS = { name: 'test', getLength: () => 8_000 };
/** A busy machine may stand still for seconds. */
const SILENT_MS = 5_000;
let bench: ServiceBench;
let api: AdminApi;
let cli: CommandLine;
let other: Awaited<ReturnType<typeof startEngine>> | undefined;

beforeAll(async () => {
  bench = await ServiceBench.open({}, 16, { probeIntervalMs: 100, serverSilentAfterMs: SILENT_MS });
  api = await AdminApi.start(bench.prefix);
});
afterAll(async () => {
  await api?.close();
  await bench?.close();
});
beforeEach(async () => {
  await bench.begin();
  cli = new CommandLine(['--url', api.url, '--token', api.rootToken, '--pool', bench.pool]);
});
afterEach(async () => {
  await inject(bench.engine.url, { kind: 'none' });
  await bench.client.call(bench.pool, 'request.abort', { abortId: 'end', all: true, waitMs: 5_000 });
  await bench.end();
  await other?.close();
  other = undefined;
});

const findRoute = (operation: string) => ROUTES.find((route) => route.operation === operation)!;
/** The reply of the REST API, checked against its schema. */
async function explain(): Promise<ExplainRoundReply> {
  const route = findRoute('round.explain');
  const answer = await api.call(route, { pool: bench.pool, ...ROUND });
  expect(answer.status).toBe(200);
  expect(api.fault(route, answer)).toBeUndefined();
  return answer.body as ExplainRoundReply;
}

describe('the explanation of an open round', () => {
  it('names its requests with tokens, speed, server and worker, and by when it ends, in REST and command line', async () => {
    // Without probes, no late answer makes the server suspect.
    await bench.register({ probe: false });
    await bench.submit(2, 1);
    await bench.startWorker({ partialSaveIntervalMs: 100 });
    await bench.running(2);
    let reply = await explain();
    const readEnd = async () => {
      reply = await explain();
      return reply.end?.byMs;
    };
    await expect.poll(readEnd).toBeDefined();
    const { waitsFor, causes, requests, requestsByState, runningLengths, end, places, usedPlaces } = reply;
    expect(waitsFor).toBe('Waits for 2 of 2 groups: 2 requests run.');
    expect(causes).toEqual([]);
    expect([requestsByState, places, usedPlaces]).toEqual([{ running: 2 }, 64, 2]);
    expect(runningLengths!.reduce((sum, { running }) => sum + running, 0)).toBe(2);
    const request = { state: 'running', maxTokens: 8_000, serverId: 's1', workerId: 'w1' };
    expect(requests).toEqual([expect.objectContaining(request), expect.objectContaining(request)]);
    const last = requests!.find(({ requestId }) => requestId === end!.requestId)!;
    expect(last.tokenCount).toBeGreaterThan(0);
    expect(end!.reason).toMatch(new RegExp(`^${last.requestId} then has 8,000 tokens, its limit`));

    // Without the id of a round, the command line takes the open round.
    const { stdout } = await cli.run('rounds timeline');
    expect(stdout).toMatch(
      /^\d{4}-\S+Z round\.opened [^]*\n\nWaits for 2 of 2 groups: 2 requests run\.\nstate +open\n/m,
    );
    expect(stdout).toMatch(/^expected end +by \d{4}-\S+Z, in \S+: job\/g\d\/0 then has 8,000 tokens/m);
    expect(stdout).toMatch(
      /^REQUEST +STATE +AGE +TOKENS +TOKENS\/S .*\njob\/g\d\/0 +running +\S+ +\d+\/8000 +[\d.]+ +s1 +w1 /m,
    );
  });

  it('is not given for an unknown round', async () => {
    await bench.register();
    await bench.submit(1);
    const read = (roundId: string) => api.call(findRoute('round.explain'), { pool: bench.pool, job: JOB, roundId });
    expect(await read('none')).toMatchObject({ status: 404, body: { code: 'ROUND_NOT_FOUND' } });
    expect((await cli.run('rounds timeline none')).stderr).toMatch(/^error: ROUND_NOT_FOUND/);
  });

  interface Cause {
    make(): Promise<unknown>;
    runbook: string;
    message: RegExp;
  }
  const runOne = async () => {
    await bench.register();
    await bench.submit(1, 1);
    await bench.startWorker();
    await bench.running(1);
  };
  const CAUSES: Record<string, Cause> = {
    'no worker runs': {
      make: async () => {
        await bench.register();
        await bench.submit(1);
      },
      runbook: 'BroomwagonNoWorkers',
      message: /^No worker is live$/,
    },
    'the pool is paused': {
      make: async () => {
        await runOne();
        await bench.client.call(bench.pool, 'pool.pause', {});
      },
      runbook: 'BroomwagonNoGrants',
      message: /^The pool is paused/,
    },
    'the weights change, and nobody commits': {
      make: async () => {
        await runOne();
        await bench.client.call(bench.pool, 'weights.begin', { syncId: 'y', version: 3, mode: 'keep' });
      },
      runbook: 'BroomwagonNoProgress',
      message: /^The weights change from version 0 to 3 \(mode keep\).* 0 of 1 servers have version 3$/,
    },
    'a server is fenced': {
      make: async () => {
        await runOne();
        const { epoch } = await bench.client.call(bench.pool, 'server.get', { serverId: 's1' });
        await bench.client.call(bench.pool, 'server.fence', { serverId: 's1', epoch });
      },
      runbook: 'BroomwagonNoReadyServer',
      message: /^1 server is failed.*\(s1\)$/,
    },
    'an engine is dead': {
      make: async () => {
        await runOne();
        await bench.engine.close();
        bench.engine = await startEngine('vllm', { lengths: LENGTHS });
      },
      runbook: 'BroomwagonNoReadyServer',
      message: /^1 server is (suspect|failed).*\(s1\)$/,
    },
    'an engine hangs': {
      make: async () => {
        // If most servers hang, none is taken out.
        other = await startEngine('vllm', { speed: 1, lengths: LENGTHS });
        await bench.register();
        await bench.register({ serverId: 's2', instanceId: 'i2', endpoint: other.url });
        await inject(bench.engine.url, { kind: 'hang', count: 1_000 });
        await bench.submit(4, 1);
        await bench.startWorker();
      },
      runbook: 'BroomwagonServersHung',
      message: /^1 server is hung.*\(s1\)$/,
    },
    'a request waits in its engine': {
      make: async () => {
        await bench.engine.close();
        const parameters = { ...ENGINE_PRESETS['7b-8k'], slots: 1 };
        bench.engine = await startEngine('vllm', { speed: 1, lengths: LENGTHS, parameters });
        await bench.register();
        await bench.submit(2, 1);
        await bench.startWorker({ waitingAfterMs: 200 });
      },
      runbook: 'BroomwagonServersHung',
      message: /^1 running request gets no tokens \(s1\)$/,
    },
    'all places are taken': {
      make: async () => {
        await bench.register({ maxInflight: 1 });
        await bench.submit(2, 1);
        await bench.startWorker();
      },
      runbook: 'BroomwagonNoGrants',
      message: /^1 request waits for a server: all 1 places of 1 ready servers are taken$/,
    },
    'all workers are busy': {
      make: async () => {
        await bench.register();
        await bench.submit(2, 1);
        await bench.startWorker({ concurrency: 1 });
      },
      runbook: 'BroomwagonNoClaims',
      message: /^1 request waits for a worker; 1 workers and gateways are live$/,
    },
    'an engine answers errors': {
      make: async () => {
        await bench.register();
        await inject(bench.engine.url, { kind: 'error-500', count: 1 });
        await bench.submit(1, 1);
        await bench.startWorker();
      },
      runbook: 'BroomwagonEnginesFailing',
      message: /of this round ended without a sample \(engine-error 1\b/,
    },
    'a worker has died': {
      make: async () => {
        await bench.register();
        await bench.submit(1, 1);
        const registration = { workerId: 'gone', registrationId: 'once', ttlMs: 500 };
        const { workerEpoch } = await bench.client.call(bench.pool, 'worker.register', registration);
        await bench.client.call(bench.pool, 'request.claim', { workerId: 'gone', workerEpoch, claimId: 'c', max: 1 });
      },
      runbook: 'BroomwagonWorkersExpired',
      message: /of this round ended without a sample \(worker-lost 1\b/,
    },
    'the trainer has opened the round and died': {
      make: async () => {
        await bench.register();
        await bench.openRound(2);
      },
      runbook: 'BroomwagonNoProgress',
      message: /^The trainer has not submitted 2 groups of the round$/,
    },
    'the trainer is silent': {
      make: async () => {
        await bench.register();
        await bench.submit(1, 1, 1_000);
      },
      runbook: 'BroomwagonNoProgress',
      message: /^Step 1 of job is blocked: TRAINER_SILENT$/,
    },
  };

  it.each(Object.entries(CAUSES))('names the cause, its runbook and what to do: %s', async (_, cause) => {
    await cause.make();
    const isNamed = async () => {
      const { causes } = await explain();
      return causes.some(({ runbook, message }) => runbook === cause.runbook && cause.message.test(message));
    };
    await expect.poll(isNamed).toBe(true);
  });
});

it('counts the requests and tokens of one group before it is aborted', async () => {
  await bench.register();
  await bench.submit(2, 3);
  const read = (groupId: string) =>
    api
      .call(findRoute('request.totals'), { pool: bench.pool, job: JOB, groupId })
      .then(({ status, body }) => [status, body.requests ?? body.code]);
  expect(await read('g1')).toEqual([200, 3]);
  expect(await read('none')).toEqual([404, 'GROUP_NOT_FOUND']);
  const pages = [];
  for (let cursor: string | undefined = '0'; cursor !== undefined;) {
    const page: { requests: { requestId: string }[]; cursor?: string } = await bench.client.call(
      bench.pool,
      'request.list',
      { job: JOB, groupId: 'g1', limit: 2, cursor },
    );
    pages.push(page.requests.map(({ requestId }) => requestId));
    ({ cursor } = page);
  }
  expect(pages).toEqual([['job/g1/0', 'job/g1/1'], ['job/g1/2']]);
});
