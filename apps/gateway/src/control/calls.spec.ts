import { readFileSync } from 'node:fs';
import { beforeEach, expect, it } from 'vitest';
import { CONTROL_CALLS } from './control-table';
import { useGateway } from '../../../../test/system/gateway-bench';

const system = useGateway(3, { registered: 'none' });
let { gateway } = system;
beforeEach(() => {
  ({ gateway } = system);
});

/** The rows of the table of docs/gateway.md; `isThere`: its calls have routes. */
function rowsInDocs(): { calls: string; isThere: boolean }[] {
  const page = readFileSync('docs/gateway.md', 'utf8');
  const [, section = ''] = page.split('## Who calls what\n');
  const rows = section.split('\n## ')[0]!.split('\n');
  return rows.map((row) => {
    const [, , calls = '', answer = ''] = row.split(' | ').flatMap((cell) => cell.split(/^\| /));
    return { calls, isThere: !answer.startsWith('not there') };
  });
}

/** `METHOD /path` of calls that have routes. */
function callsInDocs(): string[] {
  const calls = rowsInDocs().flatMap(({ calls, isThere }) => (isThere ? calls : ''));
  return [...new Set([...calls.join('\n').matchAll(/`((?:GET|POST|DELETE) \/[^`]*)`/g)].map(([, call]) => call!))];
}

/** The methods of a path; undefined: it has no route. */
async function fetchMethods(path: string): Promise<string[] | undefined> {
  const response = await fetch(`${gateway.url}${path.replace(/\{id\}|\*/, 'x')}`, { method: 'PATCH' });
  return response.status === 405 ? (response.headers.get('allow')?.split(', ') ?? []) : undefined;
}

it('has a route for each call that the documentation lists for trainers and agents', async () => {
  const calls = callsInDocs();
  expect(calls.length).toBeGreaterThan(60);
  const missing: string[] = [];
  for (const call of calls) {
    const [method = '', path = ''] = call.split(' ');
    if (!(await fetchMethods(path))?.includes(method)) missing.push(call);
  }
  expect(missing).toEqual([]);
});

it('has no route for the calls that the documentation excludes with a reason', async () => {
  const rows = rowsInDocs().filter(({ isThere }) => !isThere);
  const calls = rows.flatMap((row) => [...row.calls.matchAll(/`(?:(GET) )?(\/[^`]*)`/g)]);
  expect(calls.length).toBeGreaterThan(16);
  for (const [call, method, path = ''] of calls) {
    const methods = (await fetchMethods(path)) ?? [];
    for (const one of method === undefined ? ['GET', 'POST'] : [method]) expect(methods, call).not.toContain(one);
  }
});

it('lists each call that steers engines', () => {
  const calls = callsInDocs();
  const unlisted = CONTROL_CALLS.filter(({ method, path }) => !calls.includes(`${method} ${path}`));
  expect(unlisted).toEqual([]);
});
