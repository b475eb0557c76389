import { readFileSync } from 'node:fs';
import { beforeEach, expect, it } from 'vitest';
import { CONTROL_CALLS } from '../apps/gateway/src/control/control-table';
import { useGateway } from './system/gateway-bench';

const system = useGateway(2, { registered: 'none' });
let { gateway } = system;
beforeEach(() => {
  ({ gateway } = system);
});

/** `METHOD /path` in the table of docs/gateway.md. */
function callsInDocs(): string[] {
  const page = readFileSync('docs/gateway.md', 'utf8');
  const [, section = ''] = page.split('## Who calls what\n');
  const table = section.split('\n## ')[0]!;
  return [...new Set([...table.matchAll(/`((?:GET|POST|DELETE) \/[^`]*)`/g)].map(([, call]) => call!))];
}

it('has a route for each call that the documentation lists for trainers and agents', async () => {
  const calls = callsInDocs();
  expect(calls.length).toBeGreaterThan(60);
  const missing: string[] = [];
  for (const call of calls) {
    const [method = '', path = ''] = call.split(' ');
    const response = await fetch(`${gateway.url}${path.replace('{id}', 'x')}`, { method: 'PATCH' });
    const methods = response.headers.get('allow')?.split(', ') ?? [];
    if (response.status !== 405 || !methods.includes(method)) missing.push(call);
  }
  expect(missing).toEqual([]);
});

it('lists each call that steers engines', () => {
  const calls = callsInDocs();
  const unlisted = CONTROL_CALLS.filter(({ method, path }) => !calls.includes(`${method} ${path}`));
  expect(unlisted).toEqual([]);
});
