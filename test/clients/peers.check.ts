import { spawn } from 'node:child_process';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { json } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Gateway } from '../system/gateway';
import { ServiceBench } from '../system/service-bench';

// Runs tests of trainers as they are in a checkout, with a gateway in front of the mock engine that each test starts.
// SKYRL_CHECKOUT, SLIME_CHECKOUT: folders of checkouts. PEERS_PYTHON: a Python with pytest, pytest-asyncio and what
// their clients import; packages of ABSENT are replaced by empty modules.

const MINUTES_MS = 60_000;
/** Modules that tests import and do not use. */
const ABSENT = ['ray', 'torch', 'transformers', 'vllm', 'vllm_router', 'peft', 'datasets', 'skyrl_gym', 'cloudpathlib'];

interface Peer {
  name: string;
  /** Environment variable with the path of a checkout. */
  variable: string;
  files: string[];
  /** Of its mock engine; default vLLM. */
  dialect?: 'sglang';
  /** Tests that cannot pass, with the reason. */
  impossible: Record<string, string>;
}

const PEERS: Peer[] = [
  {
    name: 'SkyRL',
    variable: 'SKYRL_CHECKOUT',
    files: ['tests/backends/skyrl_train/inference_servers/test_remote_inference_client.py'],
    impossible: {
      'TestFinishSession::test_posts_session_id': 'reads in an engine that the router was called',
    },
  },
  {
    name: 'slime',
    variable: 'SLIME_CHECKOUT',
    files: ['tests/test_agent/test_adapters.py'],
    dialect: 'sglang',
    impossible: {},
  },
];

/** Runs pytest in a checkout with the plugin of this folder. */
function pytest(checkout: string, args: string[], environment: Record<string, string>): Promise<string> {
  const python = process.env.PEERS_PYTHON ?? 'python3';
  const plugins = resolve('test/clients/peers');
  const env = { ...process.env, PYTHONPATH: `${plugins}:${checkout}`, ABSENT_PACKAGES: ABSENT.join(), ...environment };
  const options = ['-p', 'behind_gateway', '-p', 'no:cacheprovider', '-q', '-rA', '--no-header', '--tb=short'];
  return new Promise((done, failed) => {
    const running = spawn(python, ['-m', 'pytest', ...options, ...args], { cwd: checkout, env });
    let output = '';
    running.stdout.on('data', (piece: Buffer) => (output += piece.toString()));
    running.stderr.on('data', (piece: Buffer) => (output += piece.toString()));
    running.on('error', failed).on('close', () => done(output));
  });
}

/** Names of tests by their outcome in the summary of pytest. */
const named = (output: string, outcome: string) =>
  [...output.matchAll(new RegExp(`^${outcome} (\\S+)`, 'gm'))].map(([, name]) => name!.replace(/^.*?::/, ''));

let bench: ServiceBench;
beforeAll(async () => {
  bench = await ServiceBench.open({}, PEERS.length);
});
afterAll(() => bench?.close());

/**
 * The address in the place of a mock engine. Calls of `/test/` are those by which tests read what their mock engine was
 * sent; all others go to the gateway. `POST /register` makes a mock engine the only server of the pool.
 */
async function startFront(dialect: 'vllm' | 'sglang', gateway: Gateway) {
  let engine = '';
  let count = 0;
  const register = async (endpoint: string) => {
    engine = endpoint;
    const { servers } = await bench.client.call(bench.pool, 'server.list', {});
    for (const { serverId } of servers) await bench.client.call(bench.pool, 'server.remove', { serverId });
    const server = { serverId: `mock-${(count += 1)}`, instanceId: endpoint, endpoint };
    // Mock engines do not describe themselves as engines do.
    await bench.register({ ...server, dialect, probe: false });
  };
  const front = createServer((request, response) => {
    const { url = '', method, headers } = request;
    if (url === '/register') {
      void json(request)
        .then((endpoint) => register(endpoint as string))
        .then(() => response.end())
        .catch((error: Error) => response.writeHead(500).end(error.message));
      return;
    }
    const target = url.startsWith('/test/') ? engine : gateway.url;
    const sent = send(target + url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      void pipeline(answer, response).catch(() => undefined);
    });
    void pipeline(request, sent).catch(() => response.destroy());
  });
  await new Promise<void>((listening) => front.listen(0, '127.0.0.1', listening));
  return { url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`, front };
}

for (const { name, variable, files, dialect = 'vllm', impossible } of PEERS) {
  const checkout = process.env[variable];
  const reason = checkout === undefined ? ` (skipped: ${variable} names no checkout)` : '';
  it.skipIf(checkout === undefined)(
    `the own tests of ${name} pass through the gateway, unmodified${reason}`,
    async () => {
      await bench.begin(() => 1, 1, dialect);
      // Mock engines answer nothing as a stream, or not as the engine does.
      const gateway = await Gateway.start(bench.prefix, bench.pool, {
        passRequests: 'all',
        noServerDeadlineMs: 10_000,
      });
      const { url, front } = await startFront(dialect, gateway);
      const output = await pytest(checkout!, files, { GATEWAY_URL: url });
      front.close();
      front.closeAllConnections();
      await gateway.close();
      await bench.engine.close();
      const failed = [...named(output, 'FAILED'), ...named(output, 'ERROR')];
      const passed = named(output, 'PASSED');
      console.log(`${name}: ${passed.length} of ${passed.length + failed.length} tests`);
      expect(passed.length, output).toBeGreaterThan(0);
      expect(failed.toSorted(), output).toEqual(Object.keys(impossible).toSorted());
    },
    10 * MINUTES_MS,
  );
}
