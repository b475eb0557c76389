import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ProcessGroup } from '@broomwagon/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
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

  it('restarts a killed service and prints this', async () => {
    const supervisor = new Supervisor((line) => said.push(line));
    const service = await group.start({ name: 'svc', command: program('setInterval(() => {}, 1000)') });
    const before = service.pid;
    supervisor.watch(service);
    service.kill('SIGKILL');
    await expect.poll(() => service.running && service.pid !== before).toBe(true);
    await expect.poll(() => said).toHaveLength(2);
    expect(said[0]).toMatch(/svc ended \(SIGKILL\); it is restarted.*svc\.log/);
    expect(said[1]).toBe('svc runs again');
    supervisor.stop();
  });

  it('fails the run with the end of the log when a service keeps ending', async () => {
    const supervisor = new Supervisor((line) => said.push(line));
    const service = await group.start({ name: 'svc', command: program('console.log("out of luck"); process.exit(7)') });
    supervisor.watch(service);
    await expect(supervisor.failed).rejects.toThrow(
      /svc ended \(exit code 7\) after 3 restarts in a minute.*\n(.*\n)*out of luck/,
    );
    expect(said.filter((line) => line.includes('it is restarted'))).toHaveLength(3);
  });

  it('continues as long as a service ends only now and then', async () => {
    let nowMs = 0;
    const supervisor = new Supervisor(
      (line) => said.push(line),
      () => (nowMs += 30_000),
    );
    const service = await group.start({ name: 'svc', command: program('process.exit(7)') });
    supervisor.watch(service);
    await expect.poll(() => said.length).toBeGreaterThan(5);
    supervisor.stop();
  });

  it('restarts a service that ends during its start', async () => {
    const supervisor = new Supervisor((line) => said.push(line));
    // The service ends at its first start, and runs from the second start on.
    const mark = join(folder, 'started');
    const code = `const fs = require('fs'), mark = ${JSON.stringify(mark)};
      if (!fs.existsSync(mark)) { fs.writeFileSync(mark, ''); process.kill(process.pid, 'SIGKILL'); }
      fs.writeFileSync(mark, 'ready'); setInterval(() => {}, 1000);`;
    const ready = async () => existsSync(mark) && readFileSync(mark, 'utf8') === 'ready';
    const service = group.add({ name: 'svc', command: program(code), ready });
    await supervisor.start(service);
    expect(service.running).toBe(true);
    expect(said).toEqual([expect.stringMatching(/svc ended while it was starting \(SIGKILL\)/)]);
    supervisor.stop();
  });

  it('gives up on a service that never starts, with the end of its log', async () => {
    const supervisor = new Supervisor((line) => said.push(line));
    const code = 'console.log("wrong setting"); process.exit(3)';
    const service = group.add({ name: 'svc', command: program(code), ready: async () => false });
    await expect(supervisor.start(service)).rejects.toThrow(
      /svc ended \(exit code 3\) after 3 restarts.*\n(.*\n)*wrong/,
    );
  });

  it('calls back when a service has been restarted', async () => {
    const supervisor = new Supervisor((line) => said.push(line));
    const service = group.add({ name: 'svc', command: program('setInterval(() => {}, 1000)') });
    let restarts = 0;
    await supervisor.start(service, async () => void (restarts += 1));
    service.kill('SIGKILL');
    await expect.poll(() => restarts).toBe(1);
    supervisor.stop();
  });

  it('lets services end once it is stopped', async () => {
    const supervisor = new Supervisor((line) => said.push(line));
    const service = await group.start({ name: 'svc', command: program('setInterval(() => {}, 1000)') });
    supervisor.watch(service);
    supervisor.stop();
    await service.stop();
    expect(service.running).toBe(false);
    expect(said).toEqual([]);
  });
});
