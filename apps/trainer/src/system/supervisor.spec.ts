import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ProcessGroup } from '@broomwagon/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RunFailure } from './run-failure';
import { Supervisor } from './supervisor';

describe('the supervisor', () => {
  let folder: string;
  let group: ProcessGroup;
  const said: string[] = [];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'broomwagon-supervisor-'));
    group = new ProcessGroup({ logFolder: folder });
    said.length = 0;
  });
  afterEach(async () => {
    await group.stopAll(0);
    rmSync(folder, { recursive: true });
  });

  const program = (code: string): [string, ...string[]] => [process.execPath, '-e', code];

  it('starts a killed service again and says so', async () => {
    const supervisor = new Supervisor((line) => said.push(line));
    const service = await group.start({ name: 'svc', command: program('setInterval(() => {}, 1000)') });
    const before = service.pid;
    supervisor.watch(service, true);
    service.kill('SIGKILL');
    await expect.poll(() => service.running && service.pid !== before).toBe(true);
    expect(said).toEqual([expect.stringMatching(/svc ended \(SIGKILL\); starting it again.*svc\.log/)]);
    supervisor.stop();
  });

  it('fails the run with the end of the log when a service keeps dying', async () => {
    const supervisor = new Supervisor((line) => said.push(line));
    const service = await group.start({ name: 'svc', command: program('console.log("out of luck"); process.exit(7)') });
    supervisor.watch(service, true);
    await expect(supervisor.failed).rejects.toThrow(
      /svc ended \(exit code 7\) after 3 restarts in a minute.*\n(.*\n)*out of luck/,
    );
    expect(said).toHaveLength(3);
  });

  it('goes on for as long as a service dies only now and then', async () => {
    let nowMs = 0;
    const supervisor = new Supervisor(
      (line) => said.push(line),
      () => (nowMs += 30_000),
    );
    const service = await group.start({ name: 'svc', command: program('process.exit(7)') });
    supervisor.watch(service, true);
    await expect.poll(() => said.length).toBeGreaterThan(5);
    supervisor.stop();
  });

  it('fails at once for a service that must not be started again', async () => {
    const supervisor = new Supervisor((line) => said.push(line));
    const service = await group.start({ name: 'svc', command: program('process.exit(1)') });
    supervisor.watch(service, false);
    await expect(supervisor.failed).rejects.toBeInstanceOf(RunFailure);
  });

  it('lets services end once it is stopped', async () => {
    const supervisor = new Supervisor((line) => said.push(line));
    const service = await group.start({ name: 'svc', command: program('setInterval(() => {}, 1000)') });
    supervisor.watch(service, true);
    supervisor.stop();
    await service.stop();
    expect(service.running).toBe(false);
    expect(said).toEqual([]);
  });
});
