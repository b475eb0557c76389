import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestSystem } from './system/test-system';

const EXAMPLES = 'docs/protocol/examples';

describe('a client that a generator makes from docs/protocol/asyncapi.json', () => {
  let folder: string;
  let system: TestSystem;

  beforeAll(async () => {
    // The folder is within the repository, so that modules are found.
    folder = mkdtempSync(join('dist', 'generated-client-'));
    const generate = join(EXAMPLES, 'generate-types.mjs');
    execFileSync(process.execPath, [generate, join(folder, 'protocol.ts')], { stdio: 'pipe' });
    for (const name of ['typed-client.ts', 'one-round.ts']) copyFileSync(join(EXAMPLES, name), join(folder, name));
    system = await TestSystem.start({ workers: 0, engines: 1 });
  });
  afterAll(async () => {
    await system?.stop();
    rmSync(folder, { recursive: true });
  });

  /** Compiles a file of the folder. @returns errors of the compiler */
  function compile(name: string): string[] {
    const program = ts.createProgram([join(folder, name)], {
      strict: true,
      noUncheckedIndexedAccess: true,
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.CommonJS,
      moduleResolution: ts.ModuleResolutionKind.Node10,
      ignoreDeprecations: '6.0',
      skipLibCheck: true,
      types: ['node'],
    });
    const { diagnostics } = program.emit();
    return [...ts.getPreEmitDiagnostics(program), ...diagnostics].map(({ messageText }) =>
      ts.flattenDiagnosticMessageText(messageText, '\n'),
    );
  }

  it('is well typed, leases a server and rolls out a round', () => {
    expect(compile('one-round.ts')).toEqual([]);
    const environment = { ...process.env, NATS_URL: system.natsUrl, POOL: system.pool };
    const output = execFileSync(process.execPath, [join(folder, 'one-round.js')], {
      env: environment,
      timeout: 110_000,
    });
    expect(JSON.parse(output.toString())).toEqual({ stepsTrained: 1, samples: [3, 3, 3, 3], acceptedGroups: 2 });
  });

  it('does not compile with a body that services refuse', () => {
    const wrong = [
      `client.call('lb.release', { outcome: 'melted' });`,
      `client.call('lb.release', { acquireId: 'a' });`,
      `client.call('lb.cancel', { acquireId: 'a', workerId: 'w', workerEpoch: 'e', surprise: 1 });`,
      `client.call('lb.unknown', {});`,
    ];
    const lines = [`import { Client } from './typed-client';`, 'declare const client: Client;', ...wrong];
    writeFileSync(join(folder, 'wrong.ts'), lines.join('\n'));
    expect(compile('wrong.ts')).toEqual([
      expect.stringContaining('"melted"'),
      expect.stringContaining("Property 'outcome' is missing"),
      expect.stringContaining("'surprise' does not exist"),
      expect.stringContaining('"lb.unknown"'),
    ]);
  });
});
