import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BALANCERS } from '../agents/balancers';
import { estimateMean, estimateRatio } from '../agents/statistics';
import { agentsCommand } from './agents.command';
import { documentedCalls, parseRows, printed } from './commands.fixture';

describe('agents', () => {
  it('prints one row for each router and each target, and writes all results', async () => {
    const file = join(await mkdtemp(join(tmpdir(), 'agents-')), 'agents.json');
    const small = ['--quick', '--servers', '1', '--workload', 'agents', '--oversubscription', '2', '--json', file];
    const lines = await printed(agentsCommand, ...small);
    const names = parseRows(lines).map(([name]) => name);
    for (const name of Object.keys(BALANCERS)) expect(names).toContain(name);
    const targets = parseRows(lines).filter(([name, load]) => name === 'agents' && load === '2x');
    expect(targets.map((cells) => cells.at(-1)).every((cell) => ['held', 'no'].includes(cell!))).toBe(true);
    expect(targets).toHaveLength(6);
    const { comparisons } = JSON.parse(await readFile(file, 'utf8')) as { comparisons: { seeds: number[] }[] };
    expect(comparisons.map(({ seeds }) => seeds)).toEqual([[5_001, 5_002]]);
  });

  it('estimates means and paired ratios with their intervals', () => {
    expect(estimateMean([1, 2, 3])).toMatchObject({ mean: 2 });
    expect(estimateMean([1, 2, 3]).most - 2).toBeCloseTo(4.3 / Math.sqrt(3), 9);
    expect(estimateRatio([2, 8], [1, 4])).toEqual({ mean: 2, least: 2, most: 2 });
    expect(estimateMean([5])).toEqual({ mean: 5, least: -Infinity, most: Infinity });
  });

  it.each([
    ['--seeds', '0'],
    ['--workload', 'none'],
    ['--oversubscription', '0'],
  ])('refuses a wrong option: %s %s', async (...option) => {
    await expect(printed(agentsCommand, ...option)).rejects.toMatchObject({ exitCode: 1 });
  });

  it('has the options that its documentation names', () => {
    expect(documentedCalls(agentsCommand)).toContainEqual(expect.objectContaining({ seeds: 8, servers: 8 }));
  });
});
