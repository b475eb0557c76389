import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { DockerfileParser } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

interface SchemaPart {
  description?: string;
  properties?: Record<string, SchemaPart>;
  items?: SchemaPart;
  $ref?: string;
}
type Tree = { [name: string]: Tree };

const CHART = 'deploy/helm/broomwagon';
const read = (...path: string[]) => readFileSync(join(...path), 'utf8');
const values = parse(read(CHART, 'values.yaml')) as Tree;
const schema = JSON.parse(read(CHART, 'values.schema.json')) as {
  properties: Record<string, SchemaPart>;
  definitions: Record<string, SchemaPart>;
};
/** Replaces a part that refers to a definition by the definition. */
const resolved = (part: SchemaPart): SchemaPart =>
  part.$ref ? schema.definitions[part.$ref.split('/').at(-1)!]! : part;

describe('the Helm chart', () => {
  it('has a schema that its values fit, and that describes each of them', () => {
    const check = new Ajv({ allErrors: true, strict: false }).compile(schema);
    check(values);
    expect(check.errors).toBeNull();
    const undescribed: string[] = [];
    const describeAll = (part: SchemaPart, path: string): void => {
      for (const [name, property] of Object.entries(part.properties ?? {})) {
        if (!(property.description ?? resolved(property).description)) undescribed.push(`${path}.${name}`);
        describeAll(property, `${path}.${name}`);
      }
      if (part.items) describeAll(part.items, `${path}[]`);
    };
    describeAll(schema, '');
    for (const [name, definition] of Object.entries(schema.definitions)) describeAll(definition, name);
    expect(undescribed).toEqual([]);
  });

  it('shows each value of the schema with its default', () => {
    const missing: string[] = [];
    const compare = (part: SchemaPart, given: Tree, path: string): void => {
      const { properties = {} } = resolved(part);
      for (const [name, property] of Object.entries(properties)) {
        if (given[name] === undefined) missing.push(`${path}${name}`);
        else compare(property, given[name], `${path}${name}.`);
      }
    };
    const { loadBalancer, trainerCoordinator, worker, gateway, adminApi, global, ...shared } = schema.properties;
    compare({ properties: shared as Record<string, SchemaPart> }, values, '');
    expect(missing).toEqual([]);
    // Each service has the same values as `defaults`.
    for (const service of [loadBalancer, trainerCoordinator, worker, gateway, adminApi]) {
      expect(service?.$ref).toBe(schema.properties['defaults']!.$ref);
    }
    expect(global?.description).toContain('not used');
  });

  it('makes no service process 1, which loses a SIGTERM that comes before its handler', () => {
    expect(read(CHART, 'templates', 'deployments.yaml')).toMatch(/^      shareProcessNamespace: true$/m);
    const { services } = parse(read('docker-compose.yml'), { merge: true }) as {
      services: Record<string, { image?: string; init?: boolean }>;
    };
    const own = Object.values(services).filter(({ image }) => image === 'broomwagon');
    expect(own.length).toBeGreaterThan(4);
    expect(own.map(({ init }) => init)).toEqual(own.map(() => true));
  });

  it('sets only environment variables that the services have', () => {
    const settings = read('docs/settings.md');
    const text = readdirSync(join(CHART, 'templates'))
      .filter((file) => /\.(yaml|tpl)$/.test(file))
      .map((file) => read(CHART, 'templates', file))
      .join('\n');
    const used = [...text.matchAll(/(?:"|\.|^ +|name: )([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b/gm)].map(([, name]) => name!);
    // Passwords and addresses for the containers of NATS and Redis.
    const passwords = ['NATS_CLUSTER_PASSWORD', 'NATS_ROUTES', 'REDISCLI_AUTH', 'REDIS_PASSWORD'];
    const others = new Set(passwords.concat('POD_NAME', 'POD_IP', 'REDIS_HOST', 'REDIS_HOSTS', 'REDIS_CLI_TLS'));
    expect(new Set(used).size).toBeGreaterThan(10);
    expect(used.filter((name) => !others.has(name) && !settings.includes(`| \`${name}\` |`))).toEqual([]);
  });

  it('has the version of the package, and the alert rules and the dashboard themselves', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    expect(parse(read(CHART, 'Chart.yaml'))).toMatchObject({ version, appVersion: version });
    expect(realpathSync(join(CHART, 'files/alerts.yaml'))).toBe(realpathSync('deploy/prometheus/alerts.yaml'));
    expect(realpathSync(join(CHART, 'files/dashboard.json'))).toBe(realpathSync('deploy/grafana/broomwagon.json'));
  });

  it('uses the images of docker-compose.yml', () => {
    const { services } = parse(read('docker-compose.yml'), { merge: true }) as { services: Tree };
    for (const name of ['nats', 'redis']) expect(values[name]!['image']).toBe(services[name]!['image']);
  });

  it('lets Docker Compose wait longer for the end of a service than the service itself', () => {
    const { services } = parse(read('docker-compose.yml'), { merge: true }) as {
      services: Record<string, { image: string; stop_grace_period?: string }>;
    };
    const [, shutdownMs] = /\| `SHUTDOWN_TIMEOUT_MS` \| `(\d+)`/.exec(read('docs/settings.md'))!;
    const ours = Object.values(services).filter(({ image }) => image.startsWith('broomwagon'));
    expect(ours.length).toBeGreaterThan(5);
    for (const { stop_grace_period } of ours) {
      expect(Number.parseInt(stop_grace_period ?? '10s', 10) * 1_000).toBeGreaterThan(Number(shutdownMs));
    }
  });
});

describe('the image', () => {
  const text = read('deploy/Dockerfile');
  const dockerfile = DockerfileParser.parse(text);
  const instructions = (keyword: string) =>
    dockerfile.getInstructions().filter((one) => one.getKeyword().toUpperCase() === keyword);

  it('has a Dockerfile without complaints of the linter', () => {
    expect(validate(text)).toEqual([]);
  });

  it('is built on an exact version, and ends with the services, without lab', () => {
    const stages = dockerfile.getFROMs();
    const built = new Set(stages.map((from) => from.getBuildStage()));
    const bases = stages.map((from) => from.getImage()!).filter((image) => !built.has(image));
    for (const image of bases) expect(image).toMatch(/:\d+\.\d+\.\d+-|@sha256:/);
    expect(stages.at(-1)!.getImage()).toBe('services');
    const simulator = stages.find((from) => from.getBuildStage() === 'simulator')!.getRange()!.start.line;
    for (const copy of instructions('COPY').filter((one) => one.getTextContent().includes('--from'))) {
      const isSimulator = copy.getRange().start.line > simulator;
      expect(/dist|simulator/.test(copy.getTextContent()), copy.getTextContent()).toBe(isSimulator);
    }
  });

  it('runs as a user that is given by its number, and owns none of its files', () => {
    expect(instructions('USER').map((user) => user.getArgumentsContent())).toEqual(['1000:1000']);
    expect(text).not.toContain('--chown');
    expect(text).not.toMatch(/^ADD |sudo|chmod/m);
    expect(instructions('HEALTHCHECK')).toHaveLength(2);
  });
});
