import { REST_OPERATIONS, ERROR_CODES, API_ROOT, fieldsOfPath, ROUTES, type Route } from '@broomwagon/contracts';
import { componentSchemas } from './components';
import { getComponent, COMPONENTS, type Components, type Json, parts } from './json-schema';
import { buildResponses, HEADERS, refusalComponents } from './openapi-responses';
import { readReplyTypes } from './reply-types';

const PROBLEM = 'Problem';
const POOL_SCHEMA = { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$' };
const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'Id of this change, for example a UUID: a repeat with the same key changes nothing again.',
  schema: { type: 'string', minLength: 1, maxLength: 128, pattern: '^[\\x21-\\x7e]+$' },
};
const IF_MATCH = {
  name: 'If-Match',
  in: 'header',
  description: 'The `ETag` that was read; another present one is refused with 412.',
  schema: { type: 'string', pattern: '^"\\d+"$' },
};
const LAST_EVENT_ID = {
  name: 'Last-Event-ID',
  in: 'header',
  description: 'Begin after this event; absent: with the next one.',
  schema: { type: 'string', pattern: '^\\d{1,15}$' },
};
const TAGS: Readonly<Record<string, string>> = {
  pools: 'Pools, their configuration and their pauses.',
  servers: 'Inference engines.',
  workers: 'Processes that run requests.',
  leases: 'Calls in flight.',
  sessions: 'Trajectories that stay on one server.',
  events: 'What happens in a pool.',
  decisions: 'Recent choices of servers.',
  requests: 'Samples to generate.',
  jobs: 'Training runs with their rounds and long-tail queues.',
  rebalance: 'Moves of requests between servers.',
  weights: 'Changes of the weights.',
  identity: 'The caller.',
  tokens: 'Bearer tokens.',
  'audit-log': 'Changes made through this API.',
};

/**
 * OpenAPI 3.1 document of admin-api, made from the table of routes and the DTO classes. Deterministic.
 * @param root folder of the repository
 */
export function openApiDocument(root: string): Json {
  const replyOf = { ...readReplyTypes(root), ...readReplyTypes(root, 'admin-operations.ts') };
  const used = [...new Set(ROUTES.map(({ operation }) => operation))];
  const requests = used.map((name) => REST_OPERATIONS[name].request.name);
  const schemas = componentSchemas(root, requests, [...used.map((name) => replyOf[name]!), PROBLEM]);
  schemas.ErrorCode!.description = Object.entries(ERROR_CODES)
    .map(([code, { about }]) => `${code}: ${about}`)
    .join('\n');
  const paths: Record<string, Json> = {};
  for (const route of ROUTES) {
    const name = replyOf[route.operation]!;
    schemas[name]!.description ??= `Reply of \`${route.operation}\`.`;
    (paths[API_ROOT + route.path] ??= {})[route.method.toLowerCase()] = buildOperation(route, schemas, name);
  }
  const tags = new Set(ROUTES.map(getTag));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Broomwagon admin API',
      version: '1',
      description:
        'For operators, the console and scripts. Every operation is that of the protocol over NATS with the same ' +
        'fields. An unknown field of a request is refused; a later version may add fields to replies. An id in a path ' +
        'may be written in base64url behind `base64url:`, which no proxy changes. A field that is null counts as absent. ' +
        'Errors have the form of RFC 9457.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [...tags].map((name) => ({ name, description: TAGS[name] })),
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      headers: HEADERS,
      responses: refusalComponents(),
      schemas: reachable(schemas, { paths, problem: { $ref: COMPONENTS + PROBLEM } }),
    },
  };
}

function buildOperation(route: Route, schemas: Components, replyType: string): Json {
  const {
    method,
    path,
    operation,
    role,
    values = {},
    asTrainer,
    idField,
    isExport,
    isSecret,
    isStream,
    versionField,
  } = route;
  const schema = schemas[REST_OPERATIONS[operation].request.name]!;
  const properties = (schema.properties ?? {}) as Components;
  const inPath = fieldsOfPath(path);
  const implied = new Set([...inPath, ...Object.keys(values)]);
  const open = Object.keys(properties).filter((field) => !implied.has(field) && isOpen(route, field));
  const optional = new Set(['stamp', idField, asTrainer && 'trainerEpoch']);
  const required = ((schema.required ?? []) as string[]).filter(
    (field) => open.includes(field) && !optional.has(field),
  );
  const inQuery = method === 'GET' || method === 'DELETE';
  const parameter = (name: string, where: string, isRequired: boolean): Json => {
    const { description, ...rest } = name === 'pool' ? { ...POOL_SCHEMA, description: 'The pool.' } : properties[name]!;
    return { name, in: where, required: isRequired, ...(description ? { description } : {}), schema: rest };
  };
  const text = route.about ?? String(schema.description ?? '').replace(/^`[\w.-]+`:?\s*/, '');
  const summary = text.split(/[.;:](\s|$)/, 1)[0]!.replaceAll('\n', ' ');
  const body = {
    type: 'object',
    properties: Object.fromEntries(open.map((field) => [field, properties[field]])),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
  return {
    operationId: toOperationId(route),
    tags: [getTag(route)],
    summary: summary === '' ? operation : summary[0]!.toUpperCase() + summary.slice(1),
    description: `${text}\n\nOperation \`${operation}\`; needs the role \`${role}\`.`.trim(),
    parameters: [
      ...inPath.map((name) => parameter(name, 'path', true)),
      ...(inQuery ? open.map((name) => parameter(name, 'query', required.includes(name))) : []),
      ...(method === 'GET' || isSecret ? [] : [IDEMPOTENCY_KEY]),
      ...(isStream ? [LAST_EVENT_ID] : []),
      ...(method === 'GET' || versionField === undefined ? [] : [IF_MATCH]),
    ],
    ...(inQuery || open.length === 0
      ? {}
      : { requestBody: { required: required.length > 0, content: { 'application/json': { schema: body } } } }),
    responses: buildResponses(
      route,
      open,
      {
        [getContentType(route)]: {
          schema: isExport ? getEntrySchema(schemas[replyType]!) : { $ref: COMPONENTS + replyType },
        },
      },
      !isExport && 'cursor' in ((schemas[replyType]!.properties ?? {}) as Components),
    ),
  };
}

function getContentType({ isStream, isExport }: Route): string {
  return isStream ? 'text/event-stream' : isExport ? 'application/x-ndjson' : 'application/json';
}

/** Schema of an entry of the list that a page has. */
function getEntrySchema({ properties }: Json): unknown {
  return Object.values(properties as Components).find(({ type }) => type === 'array')!.items;
}

/** True for a field that a caller of the route may give. */
function isOpen({ fields }: Route, field: string): boolean {
  return fields === undefined || fields.includes(field);
}

/** For example `serverList` for `server.list`. */
function toOperationId({ id, operation }: Route): string {
  return id ?? operation.replaceAll(/[.-](\w)/g, (_, letter: string) => letter.toUpperCase());
}

function getTag({ path }: Route): string {
  const found = path.split('/').filter((part) => part in TAGS);
  return found[1] ?? found[0]!;
}

/** The components that a schema refers to, directly or through others. */
function reachable(schemas: Components, from: Json): Components {
  const names = new Set<string>();
  const visit = (schema: unknown): void => {
    for (const name of parts(schema).map(getComponent)) {
      if (name === '' || names.has(name)) continue;
      names.add(name);
      visit(schemas[name]);
    }
  };
  visit(from);
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => names.has(name)));
}
