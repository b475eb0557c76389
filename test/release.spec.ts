import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
// @ts-expect-error Plain JavaScript: it runs before anything is built.
import { versionsIn as untyped } from '../scripts/versions.mjs';

const versionsIn = untyped as (folder: string) => [path: string, version: string][];
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
const UNRELEASED = '# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A release.\n';
const AUTHOR = {
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@localhost',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@localhost',
};

/** Each name of a package or image with a version outside of tests, whoever wrote it. */
function namedVersions(folder: string): string[] {
  const pattern = String.raw`broomwagon[:@=-]v?\d+\.\d+\.\d+`;
  const { stdout } = spawnSync('git', ['grep', '-hoIP', pattern, ':!test'], { cwd: folder, encoding: 'utf8' });
  return stdout.trim().split('\n');
}

it('packages, chart, examples and documents have one version', () => {
  for (const [path, found] of versionsIn('.')) expect(found, path).toBe(version);
  for (const name of namedVersions('.')) expect(name).toMatch(new RegExp(`[^.\\d]${version}$`));
});

describe('npm run release', () => {
  let clone: string;
  const git = (...parameters: string[]) =>
    execFileSync('git', parameters, { cwd: clone, encoding: 'utf8', env: { ...process.env, ...AUTHOR } }).trim();
  const release = (...parameters: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [resolve('scripts/release.mjs'), ...parameters], {
      cwd: clone,
      encoding: 'utf8',
      env: { ...process.env, ...AUTHOR },
    });
    return { status, stdout, stderr };
  };
  const write = (text: string) => {
    writeFileSync(join(clone, 'CHANGELOG.md'), text);
    git('add', '--all');
    git('commit', '--quiet', '--message', 'Change the log');
  };
  beforeAll(() => {
    clone = mkdtempSync(join(tmpdir(), 'broomwagon-release-'));
    execFileSync('git', ['clone', '--quiet', '--no-tags', '.', clone]);
    write(UNRELEASED);
    git('branch', 'start');
  });
  beforeEach(() => {
    git('reset', '--quiet', '--hard', 'start');
    for (const tag of git('tag').split('\n').filter(Boolean)) git('tag', '--delete', tag);
  });
  afterAll(() => rmSync(clone, { recursive: true }));

  it('writes all versions and the section of the changelog, and makes a commit and an annotated tag', () => {
    expect(release('7.8.9')).toMatchObject({ status: 0, stderr: '' });
    expect(git('status', '--porcelain')).toBe('');
    expect(git('cat-file', '-t', 'v7.8.9')).toBe('tag');
    expect(git('rev-parse', 'v7.8.9^{commit}')).toBe(git('rev-parse', 'HEAD'));
    expect(git('log', '-1', '--format=%s')).toBe('Release 7.8.9');
    const places = versionsIn(clone);
    expect(places.length).toBeGreaterThan(8);
    for (const [path, found] of places) expect(found, path).toBe('7.8.9');
    expect(new Set(namedVersions(clone).map((name) => name.replace(/^broomwagon\W/, '')))).toEqual(new Set(['7.8.9']));
    const today = new Date().toISOString().slice(0, 10);
    const released = UNRELEASED.replace('[Unreleased]', `[Unreleased]\n\n## [7.8.9] - ${today}`);
    expect(readFileSync(join(clone, 'CHANGELOG.md'), 'utf8')).toBe(released);

    // A release is refused while the section is empty, or if its version exists or is lower than the last one.
    expect(release('7.9.0').stderr).toMatch(/Unreleased of CHANGELOG\.md is empty/);
    expect(release('7.8.9').stderr).toMatch(/The tag v7\.8\.9 exists/);
    write(UNRELEASED);
    expect(release('7.8.8').stderr).toMatch(/has version 7\.8\.9, above 7\.8\.8/);
    write(released);
    git('tag', '--delete', 'v7.8.9');
    expect(release('7.8.9').stderr).toMatch(/7\.8\.9 is not above 7\.8\.9/);
  });

  it.each(['commit', 'tag'])('leaves the checkout as it was when git makes no %s', (step) => {
    const before = git('rev-parse', 'HEAD');
    git('config', `${step}.gpgSign`, 'true');
    git('config', 'gpg.program', 'false');
    const failed = release('7.8.9');
    git('config', '--unset', `${step}.gpgSign`);
    expect(failed).toMatchObject({ status: 2, stderr: expect.stringMatching(/Nothing is released/) as string });
    expect([git('rev-parse', 'HEAD'), git('status', '--porcelain'), git('tag')]).toEqual([before, '', '']);
  });

  it('with --dry-run, lists its changes and the commands to publish, and changes nothing', () => {
    const before = git('rev-parse', 'HEAD');
    const { status, stdout } = release('7.8.9', '--dry-run');
    expect(status).toBe(0);
    for (const [path] of versionsIn(clone)) expect(stdout).toContain(`${path}: ${version} -> 7.8.9`);
    expect(stdout).toMatch(/git push origin \S+ v7\.8\.9\n/);
    for (const name of ['docker buildx', 'helm package', 'twine upload']) expect(stdout).toContain(name);
    expect([git('rev-parse', 'HEAD'), git('status', '--porcelain'), git('tag')]).toEqual([before, '', '']);
  });

  it.each([
    [[], /usage/],
    [['1.2'], /usage/],
    [['v1.2.3'], /usage/],
    [['1.2.3', '--force'], /usage/],
    [['0.0.1'], /above 0\.0\.1/],
  ])('refuses %j', (parameters, message) => {
    expect(release(...parameters)).toMatchObject({ status: 2, stderr: expect.stringMatching(message) as string });
    expect(git('tag')).toBe('');
  });

  it('refuses a work tree with changes, and a changelog without the section', () => {
    writeFileSync(join(clone, 'more.txt'), '');
    expect(release('7.8.9')).toMatchObject({ status: 2, stderr: expect.stringMatching(/more\.txt/) as string });
    rmSync(join(clone, 'more.txt'));
    write('# Changelog\n');
    expect(release('7.8.9')).toMatchObject({ status: 2, stderr: expect.stringMatching(/no section/) as string });
    expect(git('tag')).toBe('');
  });
});
