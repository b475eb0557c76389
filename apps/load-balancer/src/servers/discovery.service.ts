import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { isBroomwagonError } from '@broomwagon/contracts';
import { EngineAccess, readRegistration, toServerId } from '@broomwagon/engines';
import { Alarms, Periodically } from '@broomwagon/platform';
import { planDiscovery, type DiscoveredServer, type ListedEngine } from '@broomwagon/policies';
import { splitPages, ServerStore } from '@broomwagon/state';
import { LoadBalancerConfig } from '../load-balancer.config';
import { EngineSources } from './engine-sources';
import { ServersService } from './servers.service';

/** Maximum engines probed at once. */
const ENGINES_AT_ONCE = 64;

interface ReadLists {
  ready: Found[];
  errors: unknown[];
}
interface Found extends ListedEngine {
  url: string;
  drainMs?: number;
}

/**
 * Registers and ends servers as sources list their engines (a static list, Kubernetes). A ready engine is asked and
 * registered, also after a restart. A server gets no new leases when its engine is not ready, terminates or is no
 * longer listed; a source may report such a change at once. All replicas may do so at once: each change is idempotent
 * and concerns one engine.
 */
@Injectable()
export class DiscoveryService implements OnModuleDestroy {
  private readonly logger = new Logger(DiscoveryService.name);
  private readonly unreachable = new Set<string>();
  private readonly leftOut = new Set<string>();
  /** Names of the engines that the latest lists show as ready. */
  private ready = new Set<string>();
  private readonly stopped = new AbortController();
  /** A source has reported a change, and `followChanges` has not read the sources since. */
  private isChanged = false;
  private following: Promise<void> | undefined;
  /** Resolves when the last call of `followLists` has ended. */
  private lastRead: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly servers: ServersService,
    private readonly store: ServerStore,
    private readonly config: LoadBalancerConfig,
    private readonly sources: EngineSources,
    private readonly access: EngineAccess,
    private readonly alarms: Alarms,
  ) {
    for (const source of sources.all) source.whenChanged?.(() => this.followSoon());
  }

  async onModuleDestroy(): Promise<void> {
    this.stopped.abort();
    await this.following;
  }

  /** Reads all sources, and registers ready engines. @throws the first error of a source, at the end */
  @Periodically('discovery', (config: LoadBalancerConfig) => config.probeIntervalMs, { isImmediate: true })
  async discoverAll(signal: AbortSignal): Promise<void> {
    if (this.sources.all.length === 0) return;
    const { ready, errors } = await this.followLists(signal);
    for (const some of splitPages(ready, ENGINES_AT_ONCE)) {
      await Promise.all(some.map((engine) => this.discover(engine, signal)));
    }
    if (errors.length > 0) throw errors[0];
  }

  private followSoon(): void {
    this.isChanged = true;
    this.following ??= this.followChanges().finally(() => (this.following = undefined));
  }

  /** Ends new leases after a reported change. The next run of `discoverAll` registers ready engines. */
  private async followChanges(): Promise<void> {
    while (this.isChanged && !this.stopped.signal.aborted) {
      this.isChanged = false;
      await this.followLists(this.stopped.signal).catch((error: unknown) =>
        this.logger.warn({ err: error }, 'A change of a list was not followed; the next run repeats it'),
      );
    }
  }

  /**
   * Reads the lists and ends new leases on servers. Calls run one after the other, so that an older list never undoes a
   * newer list.
   */
  private followLists(signal: AbortSignal): Promise<ReadLists> {
    const read = this.lastRead.then(() => this.readLists(signal));
    this.lastRead = read.catch(() => undefined);
    return read;
  }

  private async readLists(signal: AbortSignal): Promise<ReadLists> {
    const errors: unknown[] = [];
    const listed: Found[] = [];
    for (const source of this.sources.all) {
      try {
        const engines = await source.engines(signal);
        listed.push(
          ...engines.map(({ identity, url, isNotReady, drainMs }) => toFound(url, identity, isNotReady, drainMs)),
        );
      } catch (error) {
        errors.push(error);
      }
    }
    const ready = listed.filter(({ state }) => state === 'ready');
    this.ready = new Set(ready.map(toName));
    const known = await this.knownServers();
    const named = new Set(listed.map(({ serverId }) => serverId));
    // When a source could not be read, a server that no other source lists stays as it is.
    const judged = errors.length === 0 ? known : known.filter(({ serverId }) => named.has(serverId));
    await this.endLeases(listed, judged);
    return { ready, errors };
  }

  /** Servers that were registered because a source listed their engines. */
  private async knownServers(): Promise<DiscoveredServer[]> {
    const known: DiscoveredServer[] = [];
    for await (const { servers } of this.store.pages('list', this.config.enginePool)) {
      for (const { serverId, listedAs, withheld = false, drainUntilMs } of servers) {
        if (listedAs === undefined) continue;
        known.push({ serverId, listedAs, isWithheld: withheld, isDraining: drainUntilMs !== undefined });
      }
    }
    return known;
  }

  /** Ends new leases on servers whose engines are not listed as ready. */
  private async endLeases(listed: readonly Found[], known: readonly DiscoveredServer[]): Promise<void> {
    const { enginePool: pool, k8sDrainMs, enginesVanishedPercent } = this.config;
    const { withhold, drain, isMass } = planDiscovery(listed, known, enginesVanishedPercent);
    const message = 'Most engines are listed no more at once: they get no new requests, and stay registered';
    this.alarms.look(pool, 'discovery', isMass ? 'engines-vanished' : undefined, message, { known: known.length });
    const drainMs = new Map(listed.map((engine) => [engine.serverId, engine.drainMs]));
    for (const { serverId, listedAs } of withhold) {
      await this.change(serverId, 'An engine is not listed as ready: its server gets no new requests', () =>
        this.servers.withhold(pool, { serverId, listedAs }),
      );
    }
    for (const { serverId, listedAs } of drain) {
      const deadlineMs = drainMs.get(serverId) ?? k8sDrainMs;
      await this.change(serverId, 'An engine ends, or is listed no more; its server is drained', () =>
        this.servers.drain(pool, { serverId, deadlineMs }, listedAs),
      );
    }
  }

  private async change(serverId: string, message: string, change: () => Promise<unknown>): Promise<void> {
    try {
      await change();
      this.logger.log({ serverId }, message);
    } catch (error) {
      // The server was removed, or another engine has its address now.
      if (isBroomwagonError(error, 'SERVER_NOT_FOUND') || isBroomwagonError(error, 'FENCED')) return;
      this.logger.warn({ serverId, err: error }, 'The list of engines was not followed; the next run repeats it');
    }
  }

  private async discover(found: Found, signal: AbortSignal): Promise<void> {
    const { url, identity, serverId } = found;
    const { enginePool: pool, engineMaxInflight: maxInflight } = this.config;
    try {
      const apiKey = this.config.findEngineKey(pool);
      const engine = await readRegistration(url, { signal, apiKey, access: this.access });
      // The engine is not listed any more since it was asked.
      if (!this.ready.has(toName(found))) return;
      const { state } = await this.servers.register(pool, { ...engine, maxInflight }, identity);
      if (!this.ready.has(toName(found))) this.followSoon();
      if (this.unreachable.delete(url)) this.logger.log({ url }, 'A listed engine answers again');
      if (state !== 'removed') this.leftOut.delete(identity);
      else if (!this.leftOut.has(identity)) {
        this.leftOut.add(identity);
        const reason = 'Its server was drained by name: register it by name, or restart the engine';
        this.logger.warn({ url, serverId, identity, reason }, 'A listed engine is left out');
      }
    } catch (error) {
      if (this.unreachable.has(url)) return;
      this.unreachable.add(url);
      this.logger.warn({ url, error }, 'A listed engine could not be registered; the call is repeated');
    }
  }
}

function toName({ serverId, identity }: ListedEngine): string {
  return `${serverId} ${identity}`;
}

function toFound(url: string, identity: string | undefined, isNotReady?: true, drainMs?: number): Found {
  const serverId = toServerId(url);
  const state = drainMs !== undefined ? 'terminating' : isNotReady ? 'not-ready' : 'ready';
  return { url, serverId, identity: identity ?? serverId, state, drainMs };
}
