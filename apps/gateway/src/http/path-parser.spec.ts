import { expect, it } from 'vitest';
import { PathParser } from './path-parser';
import type { Route } from './route';

const ROUTE: Route = { answer: () => undefined };
const WITH_SLASHES: Route = { idMayHaveSlashes: true, answer: () => undefined };
const parser = new PathParser(
  new Map([
    ['POST /generate', ROUTE],
    ['DELETE /workers/{id}', WITH_SLASHES],
    ['GET /traces/{id}', ROUTE],
    ['POST /rounds/v1/{pool}/round.open', ROUTE],
    ['GET /sessions/{id}', ROUTE],
  ]),
);
const parse = (url: string, method = 'POST') => parser.parse({ url, method });

it('names a path by its route, with or without a query', () => {
  expect(parse('/generate')).toEqual({ path: '/generate', rest: '/generate' });
  expect(parse('/generate?a=/b')).toEqual({ path: '/generate', rest: '/generate' });
  expect(parse('/nothing?a')).toEqual({ path: '/nothing', rest: '/nothing' });
});

it.each([
  ['/traces/a', '/traces/{id}', 'a'],
  ['/rounds/v1/pool-1/round.open', '/rounds/v1/{pool}/round.open', 'pool-1'],
  ['/workers/a', '/workers/{id}', 'a'],
  ['/workers/http://engine:8000/a', '/workers/{id}', 'http://engine:8000/a'],
])('finds the parameter of %s', (url, path, pathId) => {
  expect(parse(url)).toEqual({ path, rest: url, pathId });
});

it.each(['/traces/', '/traces/a/b', '/rounds/v1/round.open', '/rounds/v1/p/round.other', '/workers/'])(
  'finds no route for %s',
  (url) => {
    expect(parse(url)).toEqual({ path: url, rest: url });
  },
);

it.each([
  ['/sessions/s/generate', 's', '/generate', '/generate', undefined],
  ['/sessions/a/b/generate', 'a/b', '/generate', '/generate', undefined],
  ['/sessions/a/b/traces/t', 'a/b', '/traces/t', '/traces/{id}', 't'],
  ['/sessions/s/nothing', 's', '/nothing', '/nothing', undefined],
])('splits the session from %s', (url, session, rest, path, pathId) => {
  expect(parse(url)).toMatchObject({ session, rest, path, ...(pathId !== undefined && { pathId }) });
});

it('takes the whole rest for the id of a session that is read or deleted', () => {
  expect(parse('/sessions/a/b', 'GET')).toEqual({ path: '/sessions/{id}', rest: '/sessions/a/b', pathId: 'a/b' });
});
