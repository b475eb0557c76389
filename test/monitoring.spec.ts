import { execFile, type ExecFileException, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isBroomwagonError, LIMITS, type RequestOf } from '@broomwagon/contracts';
import { findPrometheus, freePort } from '@broomwagon/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { dataSet } from './system/data-set';
import { post } from './system/gateway';
import { TestSystem } from './system/test-system';

const RULES = 'deploy/prometheus/alerts.yaml';
const rules = readFileSync(RULES, 'utf8');
const alertNames = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name!);
const recordCount = [...rules.matchAll(/- \{? ?record: /g)].length;
const dashboards = readdirSync('deploy/grafana')
  .filter((file) => file.endsWith('.json'))
  .map((file) => readFileSync(join('deploy/grafana', file), 'utf8'));
/** Labels that metrics may have: each has few values. `training_job` is bounded by METRICS_JOBS. */
const LABELS = new Set(
  [
    'alarm',
    'app',
    'bound',
    'cause',
    'check',
    'code',
    'commit',
    'identity',
    'kind',
    'method',
    'of',
    'outcome',
    'pool',
    'reason',
    'result',
    'route',
    'server',
    'state',
    'status',
    'subject',
    'task',
    'training_job',
    'transition',
  ].concat(['trigger', 'le', 'quantile', 'version', 'major', 'minor', 'patch', 'space', 'type']),
);
const DOWNLOAD_TIMEOUT_MS = 400_000;
let tools: { prometheus: string; promtool: string };

/** Output of promtool; fails with its complaints. */
function promtool(args: string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const report = (error: ExecFileException | null, out: string, complaint: string): void =>
      error === null ? resolve(out) : reject(new Error(`${out}${complaint}`));
    execFile(tools.promtool, args, report).stdin!.end(input);
  });
}

/** Names of metrics, and of the series that Prometheus makes of a histogram. */
function namesIn(page: string): string[] {
  return [...page.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name, type]) =>
    type === 'histogram' ? [name!, ...['bucket', 'count', 'sum'].map((suffix) => `${name}_${suffix}`)] : [name!],
  );
}

function metricsIn(text: string): string[] {
  return [...text.matchAll(/\b(?:broomwagon|nodejs|process)_\w+/g)].map(([name]) => name);
}

describe('metrics, dashboards and alerts', () => {
  let system: TestSystem;
  const pages = new Map<string, string>();

  beforeAll(async () => {
    system = await TestSystem.start({ balancers: 2 });
    await system.startApp('admin-api', 'admin-api-1');
    // Without a ready server the gateway answers 503 soon.
    await system.startApp('gateway', 'gateway-1', { API_KEYS: 'off', NO_SERVER_DEADLINE_MS: '500' });
    const names = ['load-balancer-1', 'trainer-coordinator-1', 'worker-1', 'admin-api-1', 'gateway-1'];
    for (const name of names) pages.set(name, await system.metrics(name));
  });
  afterAll(() => system.stop());

  it('names every metric with the prefix, and labels none with an id', () => {
    for (const [app, page] of pages) {
      const names = namesIn(page);
      expect(names.length, app).toBeGreaterThan(20);
      expect(names.filter((name) => !/^(broomwagon|process|nodejs)_/.test(name))).toEqual([]);
      expect(names).toEqual(expect.arrayContaining(['process_cpu_seconds_total', 'nodejs_eventloop_lag_p99_seconds']));
      const labels = [...page.matchAll(/[{,](\w+)="/g)].map(([, label]) => label!);
      expect([...new Set(labels)].filter((label) => !LABELS.has(label))).toEqual([]);
    }
  });

  it('shows the commit that was built', () => {
    const git = (...args: string[]) => spawnSync('git', args, { encoding: 'utf8' });
    const built = readFileSync('dist/commit', 'utf8');
    const isCheckout = git('rev-parse', 'HEAD').status === 0;
    const kind = git('cat-file', '-t', built.replace('-dirty', '')).stdout;
    expect(isCheckout ? kind.trim() : built).toBe(isCheckout ? 'commit' : 'unknown');
    const commit = process.env.BUILD_COMMIT ?? built;
    for (const [app, page] of pages) {
      expect(/broomwagon_build_info\{.*commit="([\w-]+)"/.exec(page)?.[1], app).toBe(commit);
    }
  });

  it('uses in dashboards and alerts only metrics that a service exports', () => {
    const exported = new Set([...pages.values()].flatMap(namesIn));
    for (const text of [rules, ...dashboards]) {
      const used = metricsIn(text);
      expect(used.length).toBeGreaterThan(20);
      expect([...new Set(used)].filter((name) => !exported.has(name))).toEqual([]);
    }
  });

  it('uses in dashboards and alerts only labels that their metrics have', () => {
    const labelsOf = new Map<string, Set<string>>();
    for (const [, name, labels] of [...pages.values()].flatMap((page) => [...page.matchAll(/^(\w+)\{(.*)\} /gm)])) {
      const known = labelsOf.get(name!) ?? new Set<string>();
      for (const [, label] of labels!.matchAll(/(\w+)="/g)) known.add(label!);
      labelsOf.set(name!, known);
    }
    const expressions = [
      ...rules.matchAll(/expr:([^]+?)\n +(?:for|labels):/g),
      ...dashboards.flatMap((text) => [...text.replaceAll('\\"', '"').matchAll(/"expr": "(.+)",\n/g)]),
    ].map(([, expression]) => expression!);
    // A metric without a series at the start shows no labels.
    // Recorded series have labels of their own.
    const known = expressions.filter(
      (text) => metricsIn(text).length > 0 && metricsIn(text).every((name) => labelsOf.has(name)),
    );
    expect(known.length).toBeGreaterThan(30);
    for (const text of known) {
      const labels = new Set(['job', 'instance', ...metricsIn(text).flatMap((name) => [...labelsOf.get(name)!])]);
      const selected = [...text.matchAll(/[{,](\w+)[=!]/g)].map(([, label]) => label!);
      const grouped = [...text.matchAll(/(?:by|on) \(([\w, ]*)\)/g)].flatMap(([, list]) => list!.match(/\w+/g) ?? []);
      expect(
        [...selected, ...grouped].filter((label) => !labels.has(label)),
        text,
      ).toEqual([]);
    }
  });

  it('has a runbook and a test for every alert', () => {
    const headings = [...readFileSync('docs/operations/alerts.md', 'utf8').matchAll(/^### (\w+)$/gm)];
    expect(headings.map(([, name]) => name).toSorted()).toEqual(alertNames.toSorted());
    const anchors = [...rules.matchAll(/runbook_url: docs\/operations\/alerts\.md#(\w+)/g)].map(([, anchor]) => anchor);
    expect(anchors).toEqual(alertNames.map((name) => name.toLowerCase()));
    const tested = [
      ...readFileSync('deploy/prometheus/alerts.test.yaml', 'utf8').matchAll(
        /alertname: (\w+)\s+exp_alerts:(?: &\w+)?\n/g,
      ),
    ];
    expect([...new Set(tested.map(([, name]) => name))].toSorted()).toEqual(alertNames.toSorted());
  });

  it('describes every panel of the dashboard, and links only runbooks that exist', () => {
    interface Panel {
      type: string;
      title: string;
      description?: string;
      links?: { url: string }[];
    }
    const panels = dashboards.flatMap((text) => (JSON.parse(text) as { panels: Panel[] }).panels);
    const charts = panels.filter(({ type }) => type !== 'row');
    expect(charts.filter(({ description }) => !description).map(({ title }) => title)).toEqual([]);
    const anchors = charts.flatMap(({ links = [] }) => links.map(({ url }) => url.split('#')[1]));
    const known = new Set([undefined, ...alertNames.map((name) => name.toLowerCase())]);
    expect(anchors.length).toBeGreaterThan(20);
    expect(anchors.filter((anchor) => !known.has(anchor))).toEqual([]);
  });

  it('names only commands that exist in runbooks', () => {
    const commands = [...readFileSync('docs/cli.md', 'utf8').matchAll(/^## (.+)$/gm)].map(([, command]) => command!);
    const guides = ['docs/operations.md', 'docs/operations/alerts.md'].map((file) => readFileSync(file, 'utf8')).join();
    const used = [...guides.matchAll(/npx broomwagon ([a-z-]+(?: [a-z]+)?)/g)].map(([, command]) => command!);
    expect(used.length).toBeGreaterThan(10);
    // The documents may name a group of commands alone, which has a default command.
    const isKnown = (name: string) => commands.some((command) => command === name || command.startsWith(`${name} `));
    expect(used.filter((command) => !isKnown(command))).toEqual([]);
  });

  describe('with Prometheus', () => {
    let missing: string | undefined;

    beforeAll(async () => {
      const found = await findPrometheus((line) => console.log(line));
      if ('reason' in found) missing = found.reason;
      else tools = found;
    }, DOWNLOAD_TIMEOUT_MS);
    beforeEach(({ skip }) => skip(missing !== undefined, missing));

    it('has rules that are valid and fire on recorded series', async () => {
      const [checked, config, tests] = await Promise.all([
        promtool(['check', 'rules', RULES]),
        promtool(['check', 'config', 'deploy/prometheus/prometheus.yaml']),
        promtool(['test', 'rules', 'deploy/prometheus/alerts.test.yaml']),
      ]);
      expect(checked).toContain(`SUCCESS: ${alertNames.length + recordCount} rules found`);
      expect([config, tests]).toEqual([expect.stringContaining('SUCCESS'), expect.stringContaining('SUCCESS')]);
    });

    it('exports metrics that promtool accepts', async () => {
      // Metrics of Node are left out, because prom-client chooses their names.
      const own = [...pages.values()].map((page) =>
        page.split('\n').filter((line) => /^(# \w+ )?broomwagon_/.test(line)),
      );
      await Promise.all(own.map((lines) => promtool(['check', 'metrics'], `${lines.join('\n')}\n`)));
    });

    it('fires alerts when services die and servers are cordoned', async () => {
      const services = ['load-balancer-1', 'load-balancer-2', 'trainer-coordinator-1', 'worker-1', 'worker-2'];
      const url = await startPrometheus(services);
      const firing = async () => (await listFiring(url)).map(({ alertname }) => alertname);
      // A service counts as missing until it was scraped and the rules were evaluated again.
      await expect.poll(firing).toEqual([]);

      for (const serverId of ['engine-0', 'engine-1']) await system.call('server.cordon', { serverId });
      const workerId = 'of-the-test';
      const { workerEpoch } = await system.call('worker.register', { workerId, registrationId: 'r', ttlMs: 120_000 });
      const granted = acquireAtLast({ workerId, workerEpoch, requestId: 'q' });
      await expect.poll(firing).toContain('BroomwagonNoReadyServer');
      system.process('worker-1').kill();
      await expect.poll(firing).toEqual(expect.arrayContaining(['BroomwagonServiceDown', 'BroomwagonWorkersExpired']));
      for (const serverId of ['engine-0', 'engine-1']) await system.call('server.uncordon', { serverId });
      await granted;
      await expect.poll(firing).not.toContain('BroomwagonNoReadyServer');
    });

    it('fires alerts when a server never answers, a round stands still and a gateway refuses requests', async () => {
      const pool = system.pool;
      const url = await startPrometheus(['load-balancer-1', 'trainer-coordinator-1', 'worker-2', 'gateway-1']);
      const dead = { dialect: 'vllm', model: 'm', instanceId: 'first', maxInflight: 16, weightVersion: 0 } as const;
      const endpoint = `http://127.0.0.1:${await freePort()}`;
      await system.call('server.register', { serverId: 'dead', endpoint, ...dead });
      const alert = (alertname: string, labels: object) =>
        expect.objectContaining({ alertname: `Broomwagon${alertname}`, pool, ...labels }) as unknown;
      await expect.poll(() => listFiring(url)).toContainEqual(alert('ServerNotReady', { server: 'dead' }));

      const prompts = dataSet(4, 1);
      await system.train('slow', prompts, { groupsPerStep: 1, policy: 'wait' });
      for (const serverId of ['engine-0', 'engine-1']) await system.call('server.cordon', { serverId });
      const { trainerEpoch } = await system.call('round.takeover', { job: 'slow', takeoverId: 'stuck' });
      const groups = [{ groupId: 'stuck', prompt: { text: 'p' }, samples: 1, maxTokens: 8 }];
      await system.openRound('slow', { groupsPerStep: 1, groups, policy: { name: 'wait' }, trainerEpoch });
      await expect
        .poll(() => listFiring(url))
        .toEqual(expect.arrayContaining([alert('StepSlow', { training_job: 'slow' }), alert('NoProgress', {})]));

      const burning = ['BudgetBurnsFast', 'BudgetBurns'].map((name) => alert(name, { slo: 'gateway' }));
      await expect
        .poll(async () => {
          const body = { model: 'simulated', prompt: [1, 2, 3], max_tokens: 8 };
          await post(`http://127.0.0.1:${system.port('gateway-1')}/v1/completions`, body);
          return listFiring(url);
        })
        .toEqual(expect.arrayContaining(burning));
    }, 300_000);
  });

  /** Labels of the alerts that fire. */
  async function listFiring(url: string): Promise<Record<string, string>[]> {
    const { data } = (await (await fetch(`${url}/api/v1/alerts`)).json()) as {
      data: { alerts: { labels: Record<string, string>; state: string }[] };
    };
    return data.alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels);
  }

  /** Acquires a lease, and waits again whenever the longest wait is over. */
  async function acquireAtLast(request: Omit<RequestOf<'lb.acquire'>, 'acquireId'>): Promise<void> {
    for (let wait = 1; ; wait++) {
      const acquire = { ...request, acquireId: `wait-${wait}`, waitMs: LIMITS.waitMs };
      try {
        await system.client.callWithRetry(system.pool, 'lb.acquire', acquire, { deadlineMs: 110_000 });
        return;
      } catch (error) {
        if (!isBroomwagonError(error, 'WAIT_TIMEOUT')) throw error;
      }
    }
  }

  /** Scrapes these services each second, with our rules, which do not wait before they fire. */
  async function startPrometheus(services: readonly string[]): Promise<string> {
    const port = await freePort();
    const folder = mkdtempSync(join(system.folder, 'prometheus-'));
    const jobs = services.map((name) => ({
      job_name: `broomwagon-${name}`,
      static_configs: [{ targets: [`127.0.0.1:${system.port(name)}`] }],
    }));
    const config = {
      global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '500ms' },
      rule_files: ['alerts.yaml'],
      scrape_configs: jobs,
    };
    writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config));
    const atOnce = rules
      .replaceAll(/\bfor: \w+/g, 'for: 0s')
      .replace('tokens_generated_total[30m]', 'tokens_generated_total[5s]')
      .replace('> 1800', '> 5');
    writeFileSync(join(folder, 'alerts.yaml'), atOnce);
    const url = `http://127.0.0.1:${port}`;
    await system.run({
      name: `prometheus-${port}`,
      command: [
        tools.prometheus,
        `--config.file=${join(folder, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(folder, 'series')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      ready: async () => (await fetch(`${url}/-/ready`)).ok,
    });
    const scraped = async (): Promise<unknown> =>
      ((await (await fetch(`${url}/api/v1/query?query=count(up==1)`)).json()) as never)['data']['result'];
    await expect.poll(scraped).toMatchObject([{ value: [expect.anything(), String(services.length)] }]);
    return url;
  }
});
