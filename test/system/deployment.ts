import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { parse } from 'yaml';
import type { TestSystem } from './test-system';

const CHART = 'deploy/helm/broomwagon';
/** Time that `broomwagon.terminationGracePeriodSeconds` of the chart adds to `preStopSeconds`. */
const GRACE_MS = 30_000;

const values = parse(readFileSync(`${CHART}/values.yaml`, 'utf8')) as Record<string, { preStopSeconds?: number }>;

/** The pods of one app, as processes, which are replaced as a Deployment of the chart replaces them. */
export class Deployment {
  /** Where the Service of Kubernetes sends clients. */
  readonly endpoints: string[] = [];
  private pods: string[] = [];
  private started = 0;

  /** @param maxPreStopMs time of preStop, if the chart has a longer one */
  constructor(
    private readonly system: TestSystem,
    readonly app: string,
    private readonly maxPreStopMs: number,
  ) {}

  /** Starts as many pods of this build. */
  async scale(replicas: number, build: string): Promise<void> {
    for (let index = 0; index < replicas; index += 1) await this.add(build);
  }

  /** Replaces each pod: a new one is ready before an old one gets SIGTERM (`maxUnavailable: 0`, `maxSurge: 10%`). */
  async update(build: string): Promise<void> {
    const template = readFileSync(`${CHART}/templates/deployments.yaml`, 'utf8');
    expect(template).toContain('rollingUpdate: { maxUnavailable: 0, maxSurge: 10% }');
    for (const old of this.pods) {
      await this.add(build);
      await this.terminate(old);
    }
  }

  /** Addresses of all clients that may be sent here, by the number of a try. */
  url(attempt: number): string {
    return `http://127.0.0.1:${this.system.port(this.endpoints[attempt % this.endpoints.length]!)}`;
  }

  private async add(build: string): Promise<void> {
    this.started += 1;
    const name = `${this.app}-${this.started}`;
    await this.system.startApp(this.app, name, {}, undefined, build);
    this.pods = [...this.pods, name];
    this.endpoints.push(name);
  }

  /** preStop while clients are still sent here for a time, SIGTERM, and an end within the period of grace. */
  private async terminate(name: string): Promise<void> {
    const key = this.app.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    const chartSeconds = values[key]?.preStopSeconds ?? values['defaults']!.preStopSeconds!;
    const preStopMs = Math.min(1_000 * chartSeconds, this.maxPreStopMs);
    await delay(preStopMs / 2);
    this.endpoints.splice(this.endpoints.indexOf(name), 1);
    await delay(preStopMs / 2);
    const exit = await this.system.process(name).stop(GRACE_MS);
    expect({ name, ...exit }).toEqual({ name, code: 0, signal: null });
    this.pods = this.pods.filter((pod) => pod !== name);
  }
}
