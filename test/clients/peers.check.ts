import { spawn } from 'node:child_process';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { json } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { GatewayConfig } from '../../apps/gateway/src/gateway.config';
import { Gateway } from '../system/gateway';
import { ServiceBench } from '../system/service-bench';
import { MILES_ABSENT, MILES_IMPOSSIBLE } from './peers/miles-impossible';
import { RLLM_IMPOSSIBLE } from './peers/rllm-impossible';

// Runs tests of trainers as they are in a checkout, with a gateway in front of the mock engine that each test starts.
// SKYRL_CHECKOUT, SLIME_CHECKOUT, RLLM_CHECKOUT, MILES_CHECKOUT: folders of checkouts. PEERS_PYTHON: a Python with
// pytest, pytest-asyncio and the packages that the clients import; packages of ABSENT are replaced by empty modules.

const MINUTES_MS = 60_000;
/** Modules that tests import and do not use. */
const ABSENT = ['ray', 'torch', 'transformers', 'vllm', 'vllm_router', 'peft', 'datasets', 'skyrl_gym', 'cloudpathlib'];

/** A mock engine, and the name that its test gives to the server. */
interface Mock {
  endpoint: string;
  serverId: string | null;
}

interface Peer {
  name: string;
  /** Environment variable with the path of a checkout. */
  variable: string;
  /** Folder of the checkout with the tests; default: the whole checkout. */
  folder?: string;
  /** Subfolder of `folder` with the packages; default: the whole folder. */
  sources?: string;
  files: string[];
  /** Tests whose outcome depends on the speed of the machine, with the reason: they are not run. */
  unsteady?: Record<string, string>;
  /** Modules that its tests import and do not use, of the form that absent_packages.py describes; default ABSENT. */
  absent?: string[];
  /** Dialect of the mock engine; default vLLM. */
  dialect?: 'sglang';
  /** Settings of the gateway. `passRequests: 'all'` if the mock engine does not stream, or not as the engine does. */
  settings: Partial<GatewayConfig>;
  /** Tests that cannot pass, with the reason. */
  impossible: Record<string, string>;
}

const PEERS: Peer[] = [
  {
    name: 'SkyRL',
    variable: 'SKYRL_CHECKOUT',
    files: ['tests/backends/skyrl_train/inference_servers/test_remote_inference_client.py'],
    settings: { passRequests: 'all' },
    impossible: {
      'TestFinishSession::test_posts_session_id': 'reads in an engine that the router was called',
    },
  },
  {
    name: 'slime',
    variable: 'SLIME_CHECKOUT',
    files: ['tests/test_agent/test_adapters.py'],
    dialect: 'sglang',
    settings: { passRequests: 'all' },
    impossible: {},
  },
  {
    name: 'rllm',
    variable: 'RLLM_CHECKOUT',
    folder: 'rllm-model-gateway',
    sources: 'src',
    files: [
      'tests/unit/test_server.py',
      'tests/unit/test_gateway_client.py',
      'tests/unit/test_error_resilience.py',
      'tests/unit/test_concurrent_sessions.py',
      'tests/unit/test_training_workflow.py',
      'tests/integration/test_sampling_enforcement_e2e.py',
    ],
    // The gateway of rllm records each session, and fails at the first error of an engine.
    settings: { recordSessions: 'path', recordMessages: true, maxEngineFailures: 1, noServerDeadlineMs: 1_000 },
    impossible: RLLM_IMPOSSIBLE,
  },
  {
    name: 'miles',
    variable: 'MILES_CHECKOUT',
    absent: MILES_ABSENT,
    files: [
      'tests/fast/router/test_sessions.py',
      'tests/fast/router/test_sessions_v1_pins.py',
      'tests/fast/router/test_sessions_v2.py',
      'tests/fast/router/test_session_race_conditions.py',
      'tests/fast/router/test_session_v1_v2_parity.py',
      'tests/fast/router/test_session_pretokenized_e2e.py',
      'tests/fast/rollout/generate_hub/test_single_turn.py',
      'tests/fast/rollout/generate_hub/test_multi_turn.py',
    ],
    unsteady: {
      'tests/fast/router/test_session_v1_v2_parity.py::test_agentic_v2_drop_retries_matches_v1_training_payload_bitwise':
        'wants 16 calls to be in a mock engine at once that answers after 50 ms',
    },
    dialect: 'sglang',
    settings: { passRequests: 'all' },
    impossible: MILES_IMPOSSIBLE,
  },
];

/** Runs the tests of a peer with the plugin of this folder. @returns the output of pytest */
function pytest(
  { folder = '.', sources = '.', files, unsteady = {}, absent = ABSENT }: Peer,
  checkout: string,
  gatewayUrl: string,
): Promise<string> {
  const python = process.env.PEERS_PYTHON ?? 'python3';
  const cwd = join(checkout, folder);
  const PYTHONPATH = [resolve('test/clients/peers'), join(cwd, sources), cwd].join(':');
  // LiteLLM fetches its prices otherwise, and transformers asks its hub.
  const offline = { LITELLM_LOCAL_MODEL_COST_MAP: 'True', HF_HUB_OFFLINE: '1' };
  const packages = { PYTHONPATH, ABSENT_PACKAGES: absent.join() };
  const env = { ...process.env, ...offline, ...packages, GATEWAY_URL: gatewayUrl };
  const options = ['-p', 'behind_gateway', '-p', 'no:cacheprovider', '-q', '-rA', '--no-header', '--tb=short'];
  return new Promise((done, failed) => {
    const leftOut = Object.keys(unsteady).map((name) => `--deselect=${name}`);
    const running = spawn(python, ['-m', 'pytest', ...options, ...leftOut, ...files], { cwd, env });
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

/** Ends all sessions that are recorded: tests use their ids again. */
async function deleteSessions(gateway: Gateway): Promise<void> {
  const { body } = await gateway.get('/sessions');
  const sessions = (body as { session_id: string }[]).map(({ session_id: id }) => id);
  await gateway.post('/sessions/batch_delete', { session_ids: sessions });
}

/**
 * Listens in the place of a mock engine. By calls of `/test/` tests read the requests that their mock engine got. These
 * go to the mock engine, all others to the gateway. `POST /register` makes a mock engine the only server of the pool.
 */
async function startFront(dialect: 'vllm' | 'sglang', gateway: Gateway) {
  let engine = '';
  let count = 0;
  const register = async ({ endpoint, serverId }: Mock) => {
    engine = endpoint;
    const { servers } = await bench.client.call(bench.pool, 'server.list', {});
    for (const { serverId: old } of servers) await bench.client.call(bench.pool, 'server.remove', { serverId: old });
    await deleteSessions(gateway);
    const server = { serverId: serverId ?? `mock-${(count += 1)}`, instanceId: endpoint, endpoint };
    // Mock engines do not describe themselves as engines do.
    await bench.register({ ...server, dialect, probe: false });
  };
  const front = createServer((request, response) => {
    const { url = '', method, headers } = request;
    if (url === '/register') {
      void json(request)
        .then((mock) => register(mock as Mock))
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

for (const peer of PEERS) {
  const { name, variable, dialect = 'vllm', impossible } = peer;
  const checkout = process.env[variable];
  const reason = checkout === undefined ? ` (skipped: ${variable} names no checkout)` : '';
  it.skipIf(checkout === undefined)(
    `the own tests of ${name} pass through the gateway, unmodified${reason}`,
    async () => {
      await bench.begin(() => 1, 1, dialect);
      const settings = { noServerDeadlineMs: 10_000, ...peer.settings };
      const gateway = await Gateway.start(bench.prefix, bench.pool, settings);
      const { url, front } = await startFront(dialect, gateway);
      const output = await pytest(peer, checkout!, url);
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
    30 * MINUTES_MS,
  );
}
