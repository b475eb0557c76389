import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminApi } from '../system/admin-api';
import { fillPool } from '../system/filled-pool';
import { ServiceBench } from '../system/service-bench';

/** The Go of `npm run test:clients` that has the modules of test/clients/go; without it the test is skipped. */
const go = process.env.CLIENTS_GO;
/** Time to generate, compile and run, milliseconds. */
const LIMIT_MS = 600_000;

describe.skipIf(go === undefined)('a client for Go that oapi-codegen generates from the document', () => {
  let bench: ServiceBench;
  let api: AdminApi;
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'go-client-'));
    cpSync('test/clients/go', folder, { recursive: true });
    mkdirSync(join(folder, 'adminapi'));
    bench = await ServiceBench.open({ logLevel: 'silent', eventsRelay: false }, 1);
    api = await AdminApi.start(bench.prefix);
    await fillPool(bench);
  });
  afterAll(async () => {
    await api?.close();
    await bench?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const run = async (...words: string[]) => {
    const { stdout } = await promisify(execFile)(go!, words, { cwd: folder, timeout: LIMIT_MS });
    return stdout;
  };

  it(
    'compiles, creates and lists servers, and changes settings by their version',
    async () => {
      await run('tool', 'oapi-codegen', '-config', 'oapi.yaml', resolve('docs/protocol/openapi.json'));
      await run('vet', '.');
      const printed = await run('run', '.', api.url, api.rootToken, bench.pool, `${bench.engine.url}/go`);
      expect(JSON.parse(printed)).toEqual({
        registered: 'go/1',
        location: `/api/v1/pools/${bench.pool}/servers/base64url:Z28vMQ`,
        maxInflight: 3,
        listed: 1,
        next: expect.stringMatching(/^<\/api\/v1\/pools\/.*cursor=.*>; rel="next"$/),
        changed: 200,
        refused: 'VERSION_MISMATCH',
      });
    },
    LIMIT_MS,
  );
});
