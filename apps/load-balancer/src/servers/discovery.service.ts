import { Injectable, Logger } from '@nestjs/common';
import { isBroomwagonError } from '@broomwagon/contracts';
import { EngineAccess, registrationOf, toServerId } from '@broomwagon/engines';
import { Periodically } from '@broomwagon/platform';
import { pagesOf } from '@broomwagon/state';
import { LoadBalancerConfig } from '../load-balancer.config';
import { EngineSources } from './engine-sources';
import { ServersService } from './servers.service';

/** Engines probed at once. */
const ENGINES_AT_ONCE = 64;

/**
 * Discovery: probes and registers every engine that a source lists (a static list, Kubernetes), again after a restart,
 * and drains the engines that the source lists as terminating. Safe in all replicas at once, because registration is
 * idempotent. An engine that is not listed any more stays registered until it fails its probes.
 */
@Injectable()
export class DiscoveryService {
  private readonly logger = new Logger(DiscoveryService.name);
  private readonly unreachable = new Set<string>();
  private readonly ending = new Set<string>();

  constructor(
    private readonly servers: ServersService,
    private readonly config: LoadBalancerConfig,
    private readonly sources: EngineSources,
    private readonly access: EngineAccess,
  ) {}

  /** Reads all sources; the first error is thrown after the last source. */
  @Periodically('discovery', (config: LoadBalancerConfig) => config.probeIntervalMs, { isImmediate: true })
  async discoverAll(signal: AbortSignal): Promise<void> {
    const errors: unknown[] = [];
    for (const source of this.sources.all) {
      try {
        const engines = await source.engines(signal);
        for (const some of pagesOf(engines, ENGINES_AT_ONCE)) {
          await Promise.all(
            some.map(({ url, drainMs }) =>
              drainMs === undefined ? this.discover(url, signal) : this.drain(url, drainMs),
            ),
          );
        }
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }

  /** A repeat never moves the deadline later; a server that is not registered is ignored. */
  private async drain(url: string, deadlineMs: number): Promise<void> {
    const serverId = toServerId(url);
    try {
      await this.servers.drain(this.config.enginePool, { serverId, deadlineMs });
      if (!this.ending.has(url)) this.logger.log({ url }, 'An engine is terminating; its server is drained');
      this.ending.add(url);
    } catch (error) {
      if (isBroomwagonError(error, 'SERVER_NOT_FOUND')) this.ending.delete(url);
      else this.logger.warn({ url, error }, 'A terminating engine could not be drained; the call is repeated');
    }
  }

  private async discover(url: string, signal: AbortSignal): Promise<void> {
    try {
      const engine = await registrationOf(url, {
        signal,
        apiKey: this.config.engineKeyOf(this.config.enginePool),
        access: this.access,
      });
      const { engineMaxInflight: maxInflight } = this.config;
      await this.servers.register(this.config.enginePool, { ...engine, maxInflight }, true);
      if (this.unreachable.delete(url)) this.logger.log({ url }, 'A listed engine answers again');
    } catch (error) {
      if (this.unreachable.has(url)) return;
      this.unreachable.add(url);
      this.logger.warn({ url, error }, 'A listed engine could not be registered; the call is repeated');
    }
  }
}
