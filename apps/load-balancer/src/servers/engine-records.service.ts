import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { isBroomwagonError, type ServerState, type ServerStatus } from '@broomwagon/contracts';
import { NO_VERSION, type EngineDescription } from '@broomwagon/engines';
import {
  ServerStore,
  type EngineReport,
  type LoadReport,
  type ServerChange,
  type ServerUpdate,
} from '@broomwagon/state';
import { WaiterAnswersService } from '../waiters/waiter-answers.service';
import { SweepService } from '../upkeep/sweep.service';
import { EngineHealth } from './engine-health';
import { isNews, isOtherEngine, namesWeights } from './engine-news';
import { missingFeatures } from './missing-features';
import { PrefixCachesService } from './prefix-caches.service';
import type { ProbedServer } from './probe-lanes';

/** Minimum time between two refreshes of a pool, and maximum time for the report of an engine, milliseconds. */
const REFRESH_MS = 1_000;
/** Maximum engines asked for their description at once. Further engines are asked at the next probes. */
const DESCRIBED_AT_ONCE = 256;

/** Records the reports of engines. A new start of an engine discards the state of the previous start. */
@Injectable()
export class EngineRecordsService implements OnModuleDestroy {
  private readonly logger = new Logger(EngineRecordsService.name);
  private readonly describing = new Set<string>();
  private readonly recording = new Set<string>();
  private readonly resetting = new Set<string>();
  /** Servers whose engines answer without a description of themselves, each with the reason in the log. */
  private readonly undescribed = new Map<string, string>();
  private readonly refreshes = new Map<string, { startedAt: number; done: Promise<void> }>();
  private stopped = false;

  constructor(
    private readonly servers: ServerStore,
    private readonly health: EngineHealth,
    private readonly waiters: WaiterAnswersService,
    private readonly sweeper: SweepService,
    private readonly caches: PrefixCachesService,
  ) {}

  onModuleDestroy(): void {
    this.stopped = true;
  }

  /**
   * Reads the report of an engine, and records changes in the background.
   * @returns the load of the engine. Never throws
   */
  async report(pool: string, server: ServerStatus, timeoutMs: number): Promise<LoadReport | undefined> {
    const { load, ...report } = await this.health.report({ ...server, pool }, timeoutMs);
    if (this.stopped) return undefined;
    if (isNews(server, report)) {
      const message = 'The report of an engine was not recorded; the next probe repeats it';
      void this.once(this.recording, pool, server, () => this.record(pool, server, report), message);
    }
    if (server.pendingWeightVersion !== undefined && server.inflight === 0) {
      const message = 'The reset of a prefix cache was not recorded; the next probe repeats it';
      void this.once(this.resetting, pool, server, () => this.takePending(pool, server), message);
    }
    return load && { serverId: server.serverId, epoch: server.epoch, ...load };
  }

  /** Resets the prefix cache of a server with `pendingWeightVersion`. */
  private async takePending(pool: string, { serverId, epoch, pendingWeightVersion }: ServerStatus): Promise<void> {
    const emptiedSinceMs = await this.caches.resetPending(pool, serverId, pendingWeightVersion!);
    if (emptiedSinceMs !== undefined) await this.change(pool, { serverId, epoch, emptiedSinceMs });
  }

  /** Reads the reports of all engines of the pool again, at most once in {@link REFRESH_MS}. */
  refresh(pool: string): Promise<void> {
    const last = this.refreshes.get(pool);
    if (last !== undefined && performance.now() - last.startedAt < REFRESH_MS) return last.done;
    const done = this.refreshAll(pool);
    this.refreshes.set(pool, { startedAt: performance.now(), done });
    return done;
  }

  private async refreshAll(pool: string): Promise<void> {
    for await (const { servers } of this.servers.pages('list', pool)) {
      const asked = servers.filter(({ probe }) => probe !== false);
      await Promise.all(
        asked.map(async (server) => {
          const { load: _load, ...report } = await this.health.report({ ...server, pool }, REFRESH_MS);
          if (isNews(server, report)) await this.record(pool, server, report);
        }),
      );
    }
  }

  /**
   * Asks engines to describe themselves, in the background. A pending or failed server becomes ready only after this
   * description. Skips engines that are being asked.
   */
  describeAll(pool: string, servers: readonly ProbedServer[]): void {
    for (const server of servers) {
      if (this.describing.size >= DESCRIBED_AT_ONCE) return;
      void this.describe(pool, server);
    }
  }

  /** @returns the state of the server after the description; undefined without a description. Never throws */
  async describe(pool: string, server: ProbedServer): Promise<ServerState | undefined> {
    let state: ServerState | undefined;
    const work = async (): Promise<void> => {
      const { description, startedAtSeconds } = await this.ask(pool, server);
      if (description === undefined || this.stopped) return;
      const { serverId, epoch } = server;
      const report = { startedAtSeconds, models: description.models };
      const change = await this.change(pool, { serverId, epoch, report, ...toUpdate(description) });
      state = change?.state;
    };
    await this.once(this.describing, pool, server, work, 'The description of an engine was not recorded');
    return state;
  }

  /** Description and start of the engine; empty if the engine does not describe itself. */
  private async ask(
    pool: string,
    server: ProbedServer,
  ): Promise<{ description?: EngineDescription; startedAtSeconds?: number }> {
    const name = `${pool} ${server.serverId}`;
    try {
      const description = await this.health.describe({ ...server, pool });
      const [, seconds] = /^started-([\d.]+)$/.exec(description.instanceId ?? '') ?? [];
      this.undescribed.delete(name);
      return { description, startedAtSeconds: seconds === undefined ? undefined : Number(seconds) };
    } catch (error) {
      const { message } = error as Error;
      if (this.undescribed.get(name) !== message) {
        const text = 'An engine answers, but does not describe itself as its dialect: a new start gets no leases';
        this.logger.warn({ pool, ...server, err: error }, text);
      }
      this.undescribed.set(name, message);
      return {};
    }
  }

  /** Records new models, a new weight version, or a restart of the engine. */
  private async record(pool: string, server: ServerStatus, report: EngineReport): Promise<void> {
    const { serverId, epoch, weightVersion: before, engineWeightVersion: knownWeightVersion } = server;
    const { weightVersion = NO_VERSION, models } = report;
    const isOther = isOtherEngine(server, report);
    if (!isOther && server.pendingWeightVersion === weightVersion) return;
    if (namesWeights(server, weightVersion) && !(await this.caches.mayTake(pool, serverId, weightVersion))) {
      const { startedAtSeconds } = report;
      await this.change(pool, { serverId, epoch, report: { startedAtSeconds, models }, pendingVersion: weightVersion });
      return;
    }
    const { description } = isOther ? await this.ask(pool, server) : {};
    const change = await this.change(pool, {
      serverId,
      epoch,
      report: { ...report, knownWeightVersion },
      ...(isOther ? description && toUpdate(description) : { models }),
    });
    if (change === undefined) return;
    if (change.epoch !== epoch) {
      this.logger.warn({ pool, serverId, ...report }, 'An engine has restarted: its leases have expired');
      this.sweeper.soon(pool);
    } else if (weightVersion !== (knownWeightVersion ?? NO_VERSION)) {
      this.logger.log({ pool, serverId, before, ...report }, 'An engine reports another weight version');
    }
  }

  /** Updates a server. Undefined when the server was removed or registered again: the next probe asks again. */
  private async change(pool: string, update: ServerUpdate): Promise<ServerChange | undefined> {
    try {
      const change = await this.servers.update(pool, update);
      this.waiters.sendAll(pool, change);
      return change;
    } catch (error) {
      if (isBroomwagonError(error, 'FENCED') || isBroomwagonError(error, 'SERVER_NOT_FOUND')) return undefined;
      throw error;
    }
  }

  /** Runs the work, unless the same work runs for the server, so that slow calls do not pile up. Never throws. */
  private async once(
    busy: Set<string>,
    pool: string,
    server: ProbedServer,
    work: () => Promise<void>,
    whenItFails: string,
  ): Promise<void> {
    const name = `${pool} ${server.serverId}`;
    if (busy.has(name)) return;
    busy.add(name);
    try {
      await work();
    } catch (error) {
      this.logger.warn({ err: error, pool, ...server }, whenItFails);
    } finally {
      busy.delete(name);
    }
  }
}

function toUpdate({ model, models, capabilities }: EngineDescription): Partial<ServerUpdate> {
  return { isDescribed: true, model, models, capabilities, lacks: missingFeatures(capabilities) };
}
