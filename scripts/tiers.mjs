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

/** Whether each file starts processes or needs services, and the helpers that it imports: most specs share helpers. */
const known = new Map();

function readFile(file) {
  const before = known.get(file);
  if (before !== undefined) return before;
  const text = readFileSync(file, 'utf8');
  const imported = [...text.matchAll(IMPORT)].map(([, request]) => fileOf(file, request));
  const found = {
    startsProcesses: STARTS_PROCESSES.test(text),
    needsServices: NEEDS_SERVICES.test(text),
    // The library of tests has helpers of all tiers, so its imports do not count; specs name the helpers they use.
    helpers: imported.filter((one) => one !== undefined && HELPER.test(one) && one !== 'libs/testing/src/index.ts'),
  };
  known.set(file, found);
  return found;
}

export function tierOf(spec) {
  const files = new Set([spec]);
  for (const file of files) for (const helper of readFile(file).helpers) files.add(helper);
  const all = [...files].map(readFile);
  if (all.some(({ startsProcesses }) => startsProcesses)) return 'system';
  return all.some(({ needsServices }) => needsServices) ? 'services' : 'unit';
}

/** All spec files of the folders, with their tiers. */
export function specTiers() {
  const specs = FOLDERS.flatMap((folder) =>
    readdirSync(folder, { recursive: true }).map((name) => `${folder}/${name.replaceAll('\\', '/')}`),
  ).filter((path) => path.endsWith('.spec.ts'));
  return new Map(specs.map((spec) => [spec, tierOf(spec)]));
}
