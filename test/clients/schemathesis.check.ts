import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { AdminApi } from '../system/admin-api';
import { fillPool } from '../system/filled-pool';
import { ServiceBench } from '../system/service-bench';

/** The Python of `npm run test:clients` that has Schemathesis; without it the test is skipped. */
const python = process.env.SCHEMATHESIS_PYTHON;
const seconds = Number(process.env.SCHEMATHESIS_SECONDS ?? 600);
/** Characters of the report that a failure shows. */
const SHOWN = 100_000;

/**
 * Settings of Schemathesis: ids of paths are those of the test, so that requests reach its state. Two checks are
 * narrower than their default. Some bodies are refused for rules between fields, as "one selector of an abort", which
 * the schemas do not have; and a field that is null counts as absent (test/admin-api-fuzz.spec.ts checks all others).
 */
const buildSettings = (pool: string, token: string) => `
headers = { Authorization = "Bearer ${token}" }
continue-on-failure = true
request-timeout = 60.0

[parameters]
"path.pool" = "${pool}"
"path.job" = "job"
"path.roundId" = "r1"
"path.requestId" = "job/g0/0"
"path.serverId" = "s1"
"path.workerId" = "w"

[checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "401", "403", "404", "409", "412", "422", "429"]

[checks.negative_data_rejection]
enabled = false

# A stream of events has no end: test/admin-api-events.spec.ts.
[[operations]]
include-operation-id = "eventStream"
enabled = false

# Other levels would fill the output of the test with the logs of the services.
[[operations]]
include-operation-id = "serviceLogLevel"
enabled = false

# Without the pool no request would reach a state: test/admin-api.spec.ts.
[[operations]]
include-operation-id = "poolDelete"
enabled = false
`;

let bench: ServiceBench;
let api: AdminApi;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'schemathesis-'));
  bench = await ServiceBench.open({ logLevel: 'silent', eventsRelay: false }, 1);
  api = await AdminApi.start(bench.prefix);
  await fillPool(bench);
});
afterAll(async () => {
  await api?.close();
  await bench?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs Schemathesis against admin-api. @returns exit code and report */
function run(): Promise<{ code: number | null; report: string }> {
  const settings = join(folder, 'schemathesis.toml');
  writeFileSync(settings, buildSettings(bench.pool, api.rootToken));
  const options = ['--url', api.url, '--max-time', String(seconds), '--seed', String(inject('seed') >>> 0)];
  const st = join(dirname(python!), 'st');
  const schema = resolve('docs/protocol/openapi.json');
  const child = spawn(st, ['--no-color', '--config-file', settings, 'run', schema, ...options], { cwd: folder });
  let report = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (report += text.toString()));
  return new Promise((settle, reject) => {
    child.once('error', reject);
    child.once('close', (code) => settle({ code, report }));
  });
}

it.skipIf(python === undefined)(
  `answers requests of Schemathesis for ${seconds} s as the document says, and none with 5xx`,
  async () => {
    const { code, report } = await run();
    expect(code, report.slice(-SHOWN)).toBe(0);
  },
  (seconds + 600) * 1_000,
);
