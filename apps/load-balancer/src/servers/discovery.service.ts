import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { ServerId } from '@broomwagon/contracts';
import { detectEngine } from '@broomwagon/engines';
import { Metrics, PeriodicTask } from '@broomwagon/platform';
import { LoadBalancerConfig } from '../load-balancer.config';
import { ServersService } from './servers.service';

/** Stands for the start of an engine that has no identity of its own, so that repeating is harmless. */
const UNKNOWN_START = 'unknown';

/**
 * Discovery by a static list: every engine of ENGINE_URLS is asked what it is and registered, again when it was
 * restarted. Safe in all replicas at once, because registration is idempotent.
 */
@Injectable()
export class DiscoveryService implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(DiscoveryService.name);
  private readonly task: PeriodicTask;
  private readonly unreachable = new Set<string>();

  constructor(
    private readonly servers: ServersService,
    private readonly config: LoadBalancerConfig,
    metrics: Metrics,
  ) {
    const schedule = { name: 'discovery', intervalMs: config.probeIntervalMs, metrics, immediately: true };
    this.task = new PeriodicTask(schedule, async (signal) => {
      await Promise.all(config.engineUrls.map((url) => this.discover(url, signal)));
    });
  }

  onApplicationBootstrap(): void {
    if (this.config.engineUrls.length > 0) this.task.start();
  }

  async onModuleDestroy(): Promise<void> {
    await this.task.stop();
  }

  private async discover(url: string, signal: AbortSignal): Promise<void> {
    try {
      const { adapter, capabilities } = await detectEngine(url, { signal });
      await this.servers.register(this.config.enginePool, {
        serverId: serverIdOf(url),
        endpoint: adapter.url,
        dialect: adapter.dialect,
        model: capabilities.model,
        instanceId: capabilities.instanceId ?? UNKNOWN_START,
        maxInflight: this.config.engineMaxInflight,
        capabilities: { ...capabilities },
      });
      if (this.unreachable.delete(url)) this.logger.log({ url }, 'An engine of ENGINE_URLS answers again');
    } catch (error) {
      if (this.unreachable.has(url)) return;
      this.unreachable.add(url);
      this.logger.warn({ url, error }, 'An engine of ENGINE_URLS does not answer; it is asked again');
    }
  }
}

/** `http://host:8000` is server `host-8000`. */
export function serverIdOf(url: string): ServerId {
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`.replaceAll(/[^A-Za-z0-9.]+/g, '-').replaceAll(/^-+|-+$/g, '');
}
