import { LIMITS, type Route } from '@broomwagon/contracts';
import { COMPONENTS, type Json } from './json-schema';

const PROBLEM = { $ref: `${COMPONENTS}Problem` };
const text = (description: string, schema: Json = {}): Json => ({ description, schema: { type: 'string', ...schema } });

/** Headers of replies, by name. */
export const HEADERS: Readonly<Record<string, Json>> = {
  'X-Request-Id': text(
    'Id of the request, as in the logs and the audit log; the one that the caller has sent, if any.',
    {
      maxLength: 128,
    },
  ),
  ETag: text('Version of the configuration, for `If-Match` of a change.', { pattern: '^"\\d+"$' }),
  Link: text('Address of the next page, with `rel="next"`; absent on the last page.', {
    pattern: '^<.+>; rel="next"$',
  }),
  Location: text('Path of what was created.', { format: 'uri-reference' }),
  'Idempotency-Replayed': text('`true` for the stored reply of an earlier request with the same `Idempotency-Key`.', {
    const: 'true',
  }),
  'Retry-After': text('Seconds after which the request may be repeated.', { pattern: '^\\d+$' }),
  'WWW-Authenticate': text('The kind of token that is needed.', { const: 'Bearer' }),
};

interface Refusal {
  about: string;
  headers?: readonly string[];
  /** Whether the operation of a route can be refused with this status. */
  applies: (route: Route, fields: readonly string[]) => boolean;
}
const always = (): boolean => true;
const isChange = ({ method }: Route): boolean => method !== 'GET';
const hasBody = ({ method }: Route): boolean => method !== 'GET' && method !== 'DELETE';
const isOfPool = ({ path }: Route): boolean => path.includes('{pool}');

/** Refusals by status. Every refusal has a body in the form of RFC 9457. */
const REFUSALS: Readonly<Record<number, Refusal>> = {
  400: { about: 'A field is missing, unknown, of the wrong type or out of bounds; `field` names it.', applies: always },
  401: { about: 'There is no valid token.', headers: ['WWW-Authenticate'], applies: always },
  403: { about: 'The token does not allow this operation, or this pool.', applies: always },
  404: { about: 'What the path or a field names does not exist.', applies: ({ path }) => path.includes('{') },
  409: {
    about:
      'The present state does not allow the change, some repeats succeed; or Redis has lost changes since `stamp`.',
    applies: (route, fields) => isChange(route) || fields.includes('stamp'),
  },
  412: {
    about: 'The configuration has another version than `If-Match`.',
    applies: (route) => isChange(route) && route.versionField !== undefined,
  },
  413: { about: `The body has more than ${LIMITS.bodyBytes} bytes.`, applies: hasBody },
  415: { about: 'The body is not `application/json`.', applies: hasBody },
  422: {
    about: 'The `Idempotency-Key` was used for another request.',
    applies: (route) => isChange(route) && route.isSecret !== true,
  },
  429: { about: 'Too many requests of this token or address.', headers: ['Retry-After'], applies: always },
  500: { about: 'A defect; the log has it with the id of the request.', applies: always },
  503: {
    about: 'A store or service does not answer, or the pool is paused.',
    headers: ['Retry-After'],
    applies: always,
  },
  504: { about: 'A service has not answered in time: a change may have been made.', applies: isOfPool },
};

/** The parts of responses that operations refer to: every refusal, by status. */
export function refusalComponents(): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(REFUSALS).map(([status, { about, headers = [] }]) => [
      `Problem${status}`,
      {
        description: about,
        headers: refer(['X-Request-Id', ...headers]),
        content: { 'application/problem+json': { schema: PROBLEM } },
      },
    ]),
  );
}

/**
 * Every response of a route, by status.
 * @param fields fields that a caller may give
 */
export function buildResponses(
  route: Route,
  fields: readonly string[],
  content: Json,
  hasCursor: boolean,
): Record<string, Json> {
  const { method, versionField, creates, isSecret } = route;
  const headers = [
    'X-Request-Id',
    ...(versionField === undefined ? [] : ['ETag']),
    ...(method === 'GET' && hasCursor ? ['Link'] : []),
    ...(isChange(route) && isSecret !== true ? ['Idempotency-Replayed'] : []),
  ];
  const refusals = Object.entries(REFUSALS).filter(([, { applies }]) => applies(route, fields));
  return {
    ...(creates?.isAlwaysNew ? {} : { 200: { description: 'The reply.', headers: refer(headers), content } }),
    ...(creates === undefined
      ? {}
      : { 201: { description: 'Created; the reply.', headers: refer([...headers, 'Location']), content } }),
    ...Object.fromEntries(
      refusals.map(([status]) => [status, { $ref: `#/components/responses/Problem${status}` }] as const),
    ),
  };
}

function refer(names: readonly string[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
