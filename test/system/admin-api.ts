import { readFileSync } from 'node:fs';
import type { Role, Route } from '@broomwagon/contracts';
import { API_ROOT, fieldsOfPath } from '@broomwagon/contracts';
import type { RunningService } from '@broomwagon/platform';
import { hashOfToken } from '@broomwagon/state';
import { testNatsUrl, testRedisUrl } from '@broomwagon/testing';
import addFormats from 'ajv-formats';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020';
import { bootstrapService } from '../../libs/platform/src/service/bootstrap';
import { AdminApiConfig } from '../../apps/admin-api/src/admin-api.config';
import { AdminApiModule } from '../../apps/admin-api/src/admin-api.module';
import { httpServer } from '../../apps/admin-api/src/http/http-server';

/** A reply of the API. */
export interface Answer {
  status: number;
  headers: Headers;
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any;
}
/** Fields of a call, wherever the route takes them from. */
export type Fields = Record<string, unknown>;
export interface Call {
  token?: string;
  headers?: Record<string, string>;
}

const ROOT_TOKEN = 'token-of-the-tests';
/** A response of the document, or a reference to one. */
interface DocumentedResponse {
  $ref?: string;
  headers: Record<string, object>;
  content: Record<string, object>;
}
interface DocumentedOperation {
  operationId: string;
  requestBody?: object;
  responses: Record<string, DocumentedResponse>;
}
export const OPENAPI = JSON.parse(readFileSync('docs/protocol/openapi.json', 'utf8')) as {
  paths: Record<string, Record<string, DocumentedOperation>>;
  components: {
    schemas: Record<string, object>;
    headers: Record<string, { schema: object }>;
    responses: Record<string, DocumentedResponse>;
  };
};
/** Headers that an answer has whenever the document names them; other headers depend on the state. */
const ALWAYS = new Set(['X-Request-Id', 'ETag', 'Location', 'Retry-After', 'WWW-Authenticate']);

/** One replica of admin-api in this process, and calls of it. */
export class AdminApi {
  readonly rootToken = ROOT_TOKEN;
  // Compiled in each test file: fast to compile goes before fast to run.
  private readonly ajv = new Ajv2020({
    strict: false,
    validateSchema: false,
    inlineRefs: false,
    code: { optimize: false },
  });
  private readonly validators = new Map<string, ValidateFunction>();

  private constructor(private readonly service: RunningService<AdminApiConfig>) {
    addFormats(this.ajv);
    this.ajv.addSchema({ $id: 'openapi', ...OPENAPI });
  }

  /** @param prefix prefix of the keys in Redis */
  static async start(prefix: string, settings: Partial<AdminApiConfig> = {}): Promise<AdminApi> {
    const config = Object.assign(new AdminApiConfig(), {
      natsUrl: testNatsUrl(),
      redisUrl: testRedisUrl(),
      redisKeyPrefix: prefix,
      logLevel: 'silent',
      adminTokenSha256: [hashOfToken(ROOT_TOKEN)],
      rateLimitPerToken: 1e6,
      rateLimitPerAddress: 1e6,
      ...settings,
    });
    const service = await bootstrapService(AdminApiModule, {
      app: 'admin-api',
      configType: AdminApiConfig,
      config,
      http: httpServer,
    });
    return new AdminApi(service);
  }

  close(): Promise<void> {
    return this.service.close();
  }

  get url(): string {
    return `http://127.0.0.1:${this.service.httpPort}`;
  }

  async createToken(role: Role, pools?: string[]): Promise<string> {
    const { status, body } = await this.send('POST', '/tokens', JSON.stringify({ name: role, role, pools }));
    if (status !== 201) throw new Error(JSON.stringify(body));
    return body.token;
  }

  /** A call of a route with its fields where they belong. */
  async call(route: Route, fields: Fields, call: Call = {}): Promise<Answer> {
    const inPath = fieldsOfPath(route.path);
    const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(formatValue(fields[name]).toWellFormed()),
    );
    const others = Object.fromEntries(Object.entries(fields).filter(([name]) => !inPath.includes(name)));
    const inQuery = route.method === 'GET' || route.method === 'DELETE';
    const query = new URLSearchParams();
    for (const [name, value] of inQuery ? Object.entries(others) : [])
      for (const one of Array.isArray(value) && value.length > 0 ? value : [value])
        query.append(name, formatValue(one));
    const body = inQuery || Object.keys(others).length === 0 ? undefined : JSON.stringify(others);
    return this.send(route.method, `${path}${query.size > 0 ? `?${query}` : ''}`, body, call);
  }

  async send(method: string, path: string, body?: string, { token, headers }: Call = {}): Promise<Answer> {
    const response = await fetch(`${this.url}${API_ROOT}${path}`, {
      method,
      body,
      headers: {
        ...(token === '' ? {} : { Authorization: `Bearer ${token ?? ROOT_TOKEN}` }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
    });
    const text = await response.text();
    const isJson = /[/+]json/.test(response.headers.get('Content-Type') ?? '');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  }

  /** Reason why an answer does not match docs/protocol/openapi.json; undefined if it does. */
  fault({ method, path }: Route, { status, headers, body }: Answer): string | undefined {
    const operation = OPENAPI.paths[API_ROOT + path]![method.toLowerCase()]!;
    const named = operation.responses[status];
    if (named === undefined) return `${status} is no status of the operation`;
    const own = `/paths/${escaped(API_ROOT + path)}/${method.toLowerCase()}/responses/${status}`;
    const pointer = named.$ref?.slice(1) ?? own;
    const response = named.$ref ? OPENAPI.components.responses[named.$ref.split('/').at(-1)!]! : named;
    const type = headers.get('Content-Type')?.split(';')[0] ?? '';
    if (response.content[type] === undefined) return `${status}: the type is ${type}`;
    const wrong = this.headerFault(response, headers);
    if (wrong) return `${status}: ${wrong}`;
    const validator = this.validator(`${pointer}/content/${escaped(type)}/schema`);
    return validator(body) ? undefined : `${status}: ${this.ajv.errorsText(validator.errors)}`;
  }

  /** Reason why the headers of an answer are not those that the document has for it. */
  private headerFault({ headers: documented }: DocumentedResponse, headers: Headers): string | undefined {
    for (const [name, { schema }] of Object.entries(OPENAPI.components.headers)) {
      const value = headers.get(name);
      if (value === null ? ALWAYS.has(name) && name in documented : !(name in documented)) return `${name}: ${value}`;
      if (value !== null && this.ajv.validate(schema, value) !== true) return `${name}: ${value} is not of its schema`;
    }
    return undefined;
  }

  /** True if the document accepts these fields as the body of a route; for query parameters it is not known. */
  accepts({ method, path }: Route, fields: Fields): boolean {
    if (method === 'GET' || method === 'DELETE') return true;
    const inPath = fieldsOfPath(path);
    const given = Object.fromEntries(Object.entries(fields).filter(([name]) => !inPath.includes(name)));
    // A field that is null counts as absent.
    const sent = JSON.parse(JSON.stringify(given), function (this: unknown, _, value: unknown) {
      return value === null && !Array.isArray(this) ? undefined : value;
    }) as Fields;
    if (!OPENAPI.paths[API_ROOT + path]![method.toLowerCase()]!.requestBody) return Object.keys(sent).length === 0;
    const operation = `/paths/${escaped(API_ROOT + path)}/${method.toLowerCase()}`;
    return this.validator(`${operation}/requestBody/content/application~1json/schema`)(sent) === true;
  }

  private validator(pointer: string): ValidateFunction {
    let validator = this.validators.get(pointer);
    if (!validator) {
      validator = this.ajv.compile({ $ref: `openapi#${encodeURI(pointer)}` });
      this.validators.set(pointer, validator);
    }
    return validator;
  }
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : String(JSON.stringify(value));
}
