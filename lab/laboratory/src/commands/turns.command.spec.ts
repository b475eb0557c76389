import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { documentedCalls, printed, parseRows } from './commands.fixture';
import { turnsCommand } from './turns.command';

describe('turns', () => {
  it('routes on the services as in the simulation, and prints one row for each way', async () => {
    // Uses the built program, which starts the built load-balancer.
    const program = resolve('dist/lab/laboratory/src/main.js');
    const { stdout } = await promisify(execFile)(process.execPath, [
      program,
      ...'turns --seeds 1 --trajectories 32'.split(' '),
    ]);
    const rows = parseRows(stdout.split('\n'));
    expect(rows.map(([seed, way]) => [seed, way])).toEqual([
      ['1', 'static hash'],
      ['1', 'global balancer, simulated'],
      ['1', 'global balancer, on the services'],
    ]);
    const [hash, simulated, real] = rows.map(([, , ...cells]) => cells);
    expect(real).toEqual(simulated);
    expect(hash).not.toEqual(simulated);
    expect(hash!.slice(2)).toEqual(['1.00x', '1.00x']);
  });

  it.each([
    ['--seeds', '0'],
    ['--trajectories', '1.5'],
  ])('refuses a wrong option before it starts a service: %s %s', async (...option) => {
    await expect(printed(turnsCommand, ...option)).rejects.toMatchObject({ code: 'commander.invalidArgument' });
  });

  it('has the options that its documentation names', () => {
    expect(documentedCalls(turnsCommand)).toContainEqual({ seeds: 5, trajectories: 384 });
  });
});
