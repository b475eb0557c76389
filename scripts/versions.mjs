// Places in which the tree names its own version. `npm run release` writes all of them, test/release.spec.ts compares
// them.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const PACKAGE = /(?<="name": "broomwagon",\s+"version": ")[^"]+/g;
const IMAGE = /(?<=\bbroomwagon(?:-simulator)?:)\d[\w.-]*/g;

/** Files, with patterns that match the version in them. */
function placesIn(folder) {
  const examples = readdirSync(join(folder, 'deploy', 'examples'));
  return [
    ['package.json', PACKAGE],
    ['package-lock.json', PACKAGE],
    ['clients/python/pyproject.toml', /(?<=^name = "broomwagon"\nversion = ")[^"]+/gm],
    ['clients/python/src/broomwagon/__init__.py', /(?<=^__version__ = ")[^"]+/gm],
    ['deploy/helm/broomwagon/Chart.yaml', /(?<=^(?:version|appVersion): ).+/gm],
    ['docs/operations/install.md', IMAGE],
    ...examples.map((name) => [`deploy/examples/${name}`, IMAGE]),
    ['deploy/local/engines.yaml', IMAGE],
    ['deploy/local/trainer.yaml', IMAGE],
  ];
}

/** Returns `[path, version]` of each place. Throws if a file has no version, since its form has changed then. */
export function versionsIn(folder) {
  return placesIn(folder).flatMap(([path, pattern]) => {
    const found = readFileSync(join(folder, path), 'utf8').match(pattern);
    if (found === null) throw new Error(`${path} names no version: correct scripts/versions.mjs`);
    return found.map((version) => [path, version]);
  });
}

/** Writes the version to all places. */
export function writeVersion(folder, version) {
  for (const [path, pattern] of placesIn(folder)) {
    const file = join(folder, path);
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(pattern, version));
  }
}
