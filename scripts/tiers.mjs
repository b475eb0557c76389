// Computes the tier of each spec file from the imports of the file and its helpers. `unit`: neither servers, nor Nest,
// nor processes; `services`: NATS, Redis or Nest in the process of the test; `system`: other processes.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const FOLDERS = ['apps', 'libs', 'lab', 'tools', 'test'];
/** Files whose imports count: only tests, their helpers and the lab start servers and processes, not the product. */
const HELPER = /^(test|lab|libs\/testing)\/|\.(spec|fixture)\.ts$/;
const IMPORT = /^\s*(?:import|export)\s+(?!type\s)(?:[^'";]*?\sfrom\s+)?'([^']+)'/gm;

const STARTS_PROCESSES = /'node:child_process'|\b(ManagedProcess|ProcessGroup)\b/;
const NEEDS_SERVICES =
  /'@nestjs\/(core|testing|microservices|platform-express)'|'node:(http|https|net|tls)'|\b(testNatsUrl|testRedisUrl|secondDatabaseUrl|testPool|provideServices|start(Nats|Redis|SetBackRedis)|RedisCluster|RedisSentinels|bootstrapService)\b/;

/** File of a relative import, or undefined: packages and libraries are products. */
function fileOf(importer, request) {
  if (!request.startsWith('.')) return undefined;
  const path = normalize(join(dirname(importer), request)).replaceAll('\\', '/');
  return [path, `${path}.ts`, `${path}/index.ts`].find((name) => existsSync(name) && statSync(name).isFile());
}

/** A spec file and the helpers that it imports, also through one another. */
function* withHelpers(spec) {
  const found = new Set([spec]);
  for (const file of found) {
    const text = readFileSync(file, 'utf8');
    yield text;
    for (const [, request] of text.matchAll(IMPORT)) {
      const imported = fileOf(file, request);
      // The library of tests has helpers of all tiers, so its imports do not count; specs name the helpers they use.
      if (imported !== undefined && HELPER.test(imported) && imported !== 'libs/testing/src/index.ts')
        found.add(imported);
    }
  }
}

export function tierOf(spec) {
  const texts = [...withHelpers(spec)];
  if (texts.some((text) => STARTS_PROCESSES.test(text))) return 'system';
  return texts.some((text) => NEEDS_SERVICES.test(text)) ? 'services' : 'unit';
}

/** All spec files of the folders, with their tiers. */
export function specTiers() {
  const specs = FOLDERS.flatMap((folder) =>
    readdirSync(folder, { recursive: true }).map((name) => `${folder}/${name.replaceAll('\\', '/')}`),
  ).filter((path) => path.endsWith('.spec.ts'));
  return new Map(specs.map((spec) => [spec, tierOf(spec)]));
}
