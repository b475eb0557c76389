// The build of the release before this checkout, for the tests that run two releases side by side; kept in the cache
// folder. Only Node's own modules.
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { root, run } from './prepare.mjs';

/** Commit that is used as long as there is no release. */
const BEFORE_ALL_RELEASES = '02526e3b11c8';
const ADVICE = '`git fetch --unshallow --tags` gets it; OLD_RELEASE names another commit or tag';

function git(...parameters) {
  const { status, stdout } = spawnSync('git', parameters, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

/** Name of the release before this checkout, which is not a release that is checked out itself. */
function nameOfRelease() {
  const last = git('describe', '--tags', '--abbrev=0', '--match=v[0-9]*', 'HEAD^');
  return process.env.OLD_RELEASE || last || BEFORE_ALL_RELEASES;
}

const packagesIn = (folder) => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return JSON.stringify([dependencies, devDependencies]);
};

/** Installs the packages of the build, or links the packages of this checkout (anew for each) if they are the same. */
function givePackages(folder) {
  const packages = join(folder, 'node_modules');
  if (lstatSync(packages, { throwIfNoEntry: false })?.isDirectory()) return;
  rmSync(packages, { force: true });
  if (packagesIn(folder) === packagesIn(root)) symlinkSync(realpathSync(join(root, 'node_modules')), packages);
  else run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder });
}

/** Returns the folder `dist` of the old build; undefined, with a printed reason, if git does not have the commit. */
export function oldBuild() {
  const name = nameOfRelease();
  const commit = git('rev-parse', '--verify', '--quiet', `${name}^{commit}`);
  if (commit === undefined) {
    console.log(`Rolling updates are tested with this build alone: git has no ${name}. ${ADVICE}.`);
    return undefined;
  }
  const cache =
    process.env.BROOMWAGON_CACHE || join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'broomwagon');
  const folder = join(cache, 'builds', commit);
  console.log(`The old build of rolling updates is ${name} (${folder}).`);
  if (!existsSync(folder)) {
    const making = `${folder}.${process.pid}`;
    mkdirSync(making, { recursive: true });
    const archive = join(making, 'sources.tar');
    run('git', ['archive', `--output=${archive}`, commit]);
    run('tar', ['--extract', '--file', archive], { cwd: making });
    givePackages(making);
    run(process.execPath, [join('scripts', 'build.mjs')], { cwd: making });
    renameSync(making, folder);
  }
  givePackages(folder);
  return join(folder, 'dist');
}
