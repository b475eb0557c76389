import { API_ROOT, fieldsOfPath, LOG_LEVELS, type LogLevel, type Route, ROUTES } from '@broomwagon/contracts';
import { testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { AdminApi, type Fields, OPENAPI } from './system/admin-api';
import { fillPool } from './system/filled-pool';
import { MessageFuzzer, type Requests, type Schema } from './system/message-fuzzer';
import { RedisView } from './system/redis-view';
import { ServiceBench } from './system/service-bench';

const REQUESTS = inject('runsFactor') === 1 ? 400 : 700 * inject('runsFactor');
/** Background work may change the pool while a request is refused; it does not do so this often in a row. */
const TRIES = 12;
/** Segments that `fetch` removes from a path. */
const ELSEWHERE = new Set<unknown>(['.', '..']);

interface Operation {
  parameters: { name: string; in: string; required?: boolean; schema: Schema }[];
  requestBody?: { content: { 'application/json': { schema: Schema } } };
}

let bench: ServiceBench;
let api: AdminApi;
let redis: RedisView;

beforeAll(async () => {
  bench = await ServiceBench.open({ logLevel: 'silent', eventsRelay: false }, 1);
  api = await AdminApi.start(bench.prefix);
  await fillPool(bench);
  redis = new RedisView(testRedisUrl(), bench.prefix, bench.pool);
});
afterAll(async () => {
  redis?.close();
  await api?.close();
  await bench?.close();
});

const formatRoute = ({ method, path }: Route) => `${method} ${path}`;

/** The fields of each route: parameters and body of docs/protocol/openapi.json. */
function restRequests(routes: readonly Route[]): Requests {
  const buildFieldSchema = ({ method, path }: Route): Schema => {
    const { parameters, requestBody } = OPENAPI.paths[API_ROOT + path]![method.toLowerCase()] as never as Operation;
    const inFields = parameters.filter((parameter) => parameter.in !== 'header');
    const { properties, required = [] } = requestBody?.content['application/json'].schema ?? {};
    return {
      type: 'object',
      properties: { ...Object.fromEntries(inFields.map(({ name, schema }) => [name, schema])), ...properties },
      required: [...inFields.filter((parameter) => parameter.required).map(({ name }) => name), ...required],
    };
  };
  const { schemas } = OPENAPI.components as never as { schemas: Record<string, Schema> };
  return {
    operations: Object.fromEntries(routes.map((route) => [formatRoute(route), buildFieldSchema(route)])),
    schemas,
  };
}

async function poolState(): Promise<object> {
  const keys = Object.entries(await redis.dump());
  return Object.fromEntries(keys.filter(([key]) => key.includes(`{${bench.pool}}`)));
}

/** True if the request was refused `TRIES` times, and the state of the pool had changed after each. */
async function changesOnError(route: Route, fields: Fields): Promise<boolean> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const before = JSON.stringify(await poolState());
    const { status } = await api.call(route, fields);
    if (status < 400 || JSON.stringify(await poolState()) === before) return false;
  }
  return true;
}

it(`answers ${REQUESTS} requests made of the schemas, right and wrong, and changes nothing where it answers an error`, async () => {
  // Streams have no end: admin-api-events.spec.ts.
  const routes = ROUTES.filter(({ isStream }) => !isStream);
  const fuzzer = new MessageFuzzer(inject('seed'), restRequests(routes));
  const known = { serverId: 's1', workerId: 'w', job: 'job', roundId: 'r1', groupId: 'g0', requestId: 'job/g0/0' };
  for (const [field, value] of Object.entries(known)) fuzzer.remember(field, value);
  const outcomes = new Map<string, number>();
  const faults: string[] = [];
  for (let sent = 0; sent < REQUESTS; sent++) {
    const route = routes[sent % routes.length]!;
    const fields = fuzzer.fields(formatRoute(route));
    if (sent % 16 !== 0) fields.pool = bench.pool;
    // Other levels would fill the output of the test with the logs of the services.
    if (LOG_LEVELS.includes(fields.level as LogLevel)) fields.level = 'fatal';
    // With one of these segments in the path, another route would get the request.
    for (const name of fieldsOfPath(route.path)) if (ELSEWHERE.has(fields[name])) fields[name] = 'dots';
    const isChange = route.method !== 'GET';
    const before = isChange ? await poolState() : undefined;
    const answer = await api.call(route, fields);
    const { status, body } = answer;
    const told = `${formatRoute(route)} ${JSON.stringify(fields).slice(0, 1_000)}: ${status}`;
    const fault = route.isExport && status === 200 ? undefined : api.fault(route, answer);
    if (fault) faults.push(`${told} ${fault}`);
    if (status >= 500) faults.push(`${told} ${JSON.stringify(body)}`);
    if (status < 300 && !api.accepts(route, fields)) faults.push(`${told} the document refuses this`);
    if (status >= 400 && isChange && JSON.stringify(await poolState()) !== JSON.stringify(before)) {
      if (await changesOnError(route, fields)) faults.push(`${told} ${body.code}, and something was changed`);
    }
    outcomes.set(String(body.code ?? status), (outcomes.get(String(body.code ?? status)) ?? 0) + 1);
    if (status < 300) fuzzer.learn(body);
  }
  expect(faults.slice(0, 10)).toEqual([]);
  // The requests reached the state, and not only the validation.
  expect(outcomes.get('200')).toBeGreaterThan(REQUESTS / 10);
  expect(outcomes.get('VALIDATION_FAILED')).toBeGreaterThan(REQUESTS / 20);
  expect(outcomes.size).toBeGreaterThan(8);
}, 600_000);
