// `npm run release -- VERSION [--dry-run]`: gives packages, image, chart and documents one version, names the section
// `Unreleased` of CHANGELOG.md after it, and makes a commit and an annotated tag in this checkout. It publishes
// nothing: it prints the commands that do. Only Node's own modules.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { versionsIn, writeVersion } from './versions.mjs';

// The folder of package.json, where npm starts its scripts.
const folder = process.cwd();
const CHANGELOG = join(folder, 'CHANGELOG.md');
const UNRELEASED = /^## \[Unreleased\]\n/m;
const git = (...parameters) => execFileSync('git', parameters, { cwd: folder, encoding: 'utf8', stdio: 'pipe' }).trim();

class Refusal extends Error {}

function readArguments() {
  try {
    const { values, positionals } = parseArgs({ options: { 'dry-run': { type: 'boolean' } }, allowPositionals: true });
    const [version] = positionals;
    if (positionals.length !== 1 || !/^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}$/.test(version)) throw new Error();
    return { version, isDryRun: values['dry-run'] === true };
  } catch {
    throw new Refusal('usage: npm run release -- VERSION [--dry-run], with a VERSION as 1.2.3');
  }
}

const isAbove = (a, b) => a.localeCompare(b, 'en', { numeric: true }) > 0;

/** The text of CHANGELOG.md with the section of this release. */
function changelogWith(version) {
  const text = readFileSync(CHANGELOG, 'utf8');
  const [last] = text.match(/(?<=^## \[)\d[^\]]*/m) ?? [];
  if (last !== undefined && !isAbove(version, last))
    throw new Refusal(`${version} is not above ${last}, the last release`);
  const [, section] = text.split(UNRELEASED);
  if (section === undefined) throw new Refusal('CHANGELOG.md has no section "## [Unreleased]"');
  if (!/^- /m.test(section.split(/^## /m)[0])) {
    throw new Refusal('The section Unreleased of CHANGELOG.md is empty: write what changes for users');
  }
  const today = new Date().toISOString().slice(0, 10);
  return text.replace(UNRELEASED, `## [Unreleased]\n\n## [${version}] - ${today}\n`);
}

function nextSteps(version) {
  return `What to do next, with your registry for REGISTRY:
  npm test && npm run test:kubernetes && npm run test:python
  git push origin ${git('branch', '--show-current')} v${version}
  docker buildx build --file deploy/Dockerfile --build-arg BUILD_COMMIT=$(git rev-parse v${version}^{commit}) \\
    --platform linux/amd64,linux/arm64 --sbom=true --provenance=mode=max --push --tag REGISTRY/broomwagon:${version} .
  helm package deploy/helm/broomwagon && helm push broomwagon-${version}.tgz oci://REGISTRY/charts
  python3 -m build --outdir dist/python clients/python && python3 -m twine upload dist/python/broomwagon-${version}*
The npm package is private: it is published only as the image.`;
}

function release() {
  const { version, isDryRun } = readArguments();
  const changes = git('status', '--porcelain');
  if (changes !== '') throw new Refusal(`The work tree has changes; commit them first:\n${changes}`);
  if (git('tag', '--list', `v${version}`) !== '') throw new Refusal(`The tag v${version} exists`);
  const changelog = changelogWith(version);
  for (const [path, before] of versionsIn(folder)) {
    if (isAbove(before, version)) throw new Refusal(`${path} has version ${before}, above ${version}`);
    if (before !== version) console.log(`${path}: ${before} -> ${version}`);
  }
  console.log(`CHANGELOG.md: Unreleased -> ${version}`);
  if (isDryRun) return console.log(`Nothing is changed: --dry-run.\n${nextSteps(version)}`);
  const before = git('rev-parse', 'HEAD');
  try {
    writeVersion(folder, version);
    writeFileSync(CHANGELOG, changelog);
    git('commit', '--quiet', '--all', '--message', `Release ${version}`);
    git('tag', '--annotate', `v${version}`, '--message', `Release ${version}`);
  } catch (error) {
    // A commit without an author or a tag that cannot be signed fails. The reset loses nothing: there were no changes.
    git('reset', '--quiet', '--hard', before);
    throw new Refusal(`Nothing is released, and the work tree is as before:\n${error.stderr || error.message}`);
  }
  console.log(`Commit and tag v${version} are made.\n${nextSteps(version)}`);
}

try {
  release();
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  console.error(`error: ${error.message}`);
  process.exitCode = 2;
}
