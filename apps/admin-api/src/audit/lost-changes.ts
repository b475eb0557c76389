import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import {
  type AuditEntry,
  isBroomwagonError,
  LIMITS,
  type LostChangesReply,
  type PoolName,
  type Stamp,
} from '@broomwagon/contracts';
import { TypedClient } from '@broomwagon/messaging';
import { Alarms } from '@broomwagon/platform';
import { CredentialStore, PoolDirectory } from '@broomwagon/state';
import { AuditLog } from './audit-log';

const CHECK_INTERVAL_MS = 2_000;
/**
 * Maximum age of revocations that are made again, milliseconds. Operators notice when a running Redis loses more time.
 */
export const REPLAYED_MS = 3_600_000;
/** An alarm reports the changes of this time before a loss, milliseconds. The alarm lasts as long. */
const NAMED_MS = 600_000;

/**
 * Compares Redis with the audit log, since a Redis that was set back has lost the latest changes of operators. Revokes
 * revoked tokens again. An alarm only reports other changes, because later changes may have replaced them.
 */
@Injectable()
export class LostChanges implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(LostChanges.name);
  /** Time of each revocation, milliseconds, by the id of its token. */
  private readonly revocations = new Map<string, number>();
  private readonly stamps = new Map<PoolName, Stamp>();
  private readonly lost = new Map<PoolName, Required<LostChangesReply>>();
  /** Place in the audit stream after the last revocation that was read. */
  private from: number | undefined;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(
    private readonly audit: AuditLog,
    private readonly credentials: CredentialStore,
    private readonly directory: PoolDirectory,
    private readonly client: TypedClient,
    private readonly alarms: Alarms,
  ) {}

  onApplicationBootstrap(): void {
    void this.checkAgain();
  }

  onApplicationShutdown(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  /** Runs all checks, and then again after a pause. Errors are logged and do not end the checks. */
  private async checkAgain(): Promise<void> {
    for (const check of [() => this.checkRevocations(), () => this.checkPools()]) {
      await check().catch((error: unknown) => this.logger.warn({ err: error }, 'Lost changes were not looked for'));
    }
    if (!this.isStopped) this.timer = setTimeout(() => void this.checkAgain(), CHECK_INTERVAL_MS).unref();
  }

  /** Revokes tokens whose revocation Redis has lost. @returns their ids. @throws BroomwagonError UNAVAILABLE */
  async checkRevocations(): Promise<string[]> {
    const sinceMs = Date.now() - REPLAYED_MS;
    for await (const { sequence, entry } of this.audit.read({ operation: 'token.revoke', from: this.from, sinceMs })) {
      this.from = sequence + 1;
      const { tokenId } = entry.request as { tokenId?: unknown };
      if (entry.result === 'done' && typeof tokenId === 'string') this.revocations.set(tokenId, entry.atMs);
    }
    for (const [tokenId, atMs] of this.revocations) if (atMs < sinceMs) this.revocations.delete(tokenId);
    const again = await this.credentials.revokeAgain(this.revocations);
    for (const tokenId of again) {
      this.logger.error({ tokenId }, 'Redis was set back: a revoked token was valid again, and is revoked now');
      const actor = { actorId: 'admin-api', actor: 'admin-api', role: 'admin', address: '', requestId: '' } as const;
      const change = { operation: 'token.revoke', request: { tokenId }, result: 'done' } as const;
      await this.audit.add({ atMs: Date.now(), ...actor, ...change });
    }
    this.alarms.look('*', 'revocations', again.length > 0 ? 'revocations-lost' : undefined, `Revoked again: ${again}`);
    return again;
  }

  /** Changes that Redis may have lost when it was set back in the last minutes. */
  list(pool: PoolName, limit = Infinity): LostChangesReply {
    const { changes = [], ...rest } = this.lost.get(pool) ?? {};
    return { ...rest, changes: changes.slice(-limit) };
  }

  /** @throws BroomwagonError UNAVAILABLE */
  async checkPools(): Promise<void> {
    for (const pool of await this.directory.list()) {
      const before = this.stamps.get(pool);
      const stamp = await this.readStamp(pool, before);
      if (stamp === undefined) continue;
      const setBackAtMs = await this.findSetBack(pool, before, stamp);
      if (setBackAtMs === undefined) continue;
      if (setBackAtMs > Date.now() - NAMED_MS) this.lost.set(pool, await this.findLost(pool, setBackAtMs));
      // The stamp is stored only after the audit log was read, so that the next check repeats a failed read.
      this.stamps.set(pool, stamp);
      this.raiseAlarm(pool);
    }
  }

  /**
   * Time at which Redis was last set back, milliseconds; 0: not set back between the stamps; undefined: no service
   * answers for the pool.
   */
  private async findSetBack(pool: PoolName, before: Stamp | undefined, now: Stamp): Promise<number | undefined> {
    if (before !== undefined) return getGeneration(before) === getGeneration(now) ? 0 : Date.now();
    const status = await this.client.call(pool, 'lb.status', {}).catch(() => undefined);
    return status && (status.setBackAtMs ?? 0);
  }

  private async findLost(pool: PoolName, setBackAtMs: number): Promise<Required<LostChangesReply>> {
    const changes: AuditEntry[] = [];
    for await (const { entry } of this.audit.read({ pool, sinceMs: setBackAtMs - NAMED_MS })) {
      if (entry.result === 'done' && entry.atMs <= setBackAtMs) changes.push(entry);
    }
    for (const { operation, atMs, actor, request } of changes) {
      const about = { pool, operation, atMs, actor, request };
      this.logger.error(about, 'Redis was set back: this change may be lost; make it again if it is');
    }
    return { setBackAtMs, changes: changes.slice(-LIMITS.page) };
  }

  private raiseAlarm(pool: PoolName): void {
    const { setBackAtMs = 0, changes } = this.list(pool);
    const isActive = setBackAtMs > Date.now() - NAMED_MS;
    if (!isActive) this.lost.delete(pool);
    const named = changes.map(({ operation, request }) => `${operation} ${JSON.stringify(request)}`).join(', ');
    const alarm = isActive && changes.length > 0 ? 'changes-may-be-lost' : undefined;
    this.alarms.look(pool, 'changes', alarm, `Redis was set back, and these changes may be lost: ${named}`);
  }

  /** Stamp of the pool; undefined while no service answers for the pool. */
  private async readStamp(pool: PoolName, seen: Stamp | undefined): Promise<Stamp | undefined> {
    try {
      return (await this.client.call(pool, 'weights.status', { stamp: seen })).stamp;
    } catch (error) {
      if (!isBroomwagonError(error, 'GENERATION_CHANGED')) return undefined;
      return (error.details as { stamp?: Stamp } | undefined)?.stamp;
    }
  }
}

function getGeneration(stamp: Stamp): string {
  return stamp.split('.')[0]!;
}
