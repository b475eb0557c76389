import { Injectable } from '@nestjs/common';
import { createHash } from 'node:crypto';
import {
  BroomwagonError,
  invalidField,
  LIMITS,
  type ConfigureRebalanceRequest,
  type ExecuteRebalanceRequest,
  type MoveRefusal,
  type MoveState,
  type MoveStatus,
  type MoveTimes,
  type PlannedMove,
  type PlanRebalanceRequest,
  type PoolName,
  type RebalanceSettings,
  type RebalanceStatus,
  type RebalanceStatusRequest,
  type RebalanceSummary,
  type ServerStatus,
  type WantedMove,
} from '@broomwagon/contracts';
import { type MoveCostModel, planTierCost, planTierMin, type RebalancePlan } from '@broomwagon/policies';
import { MoveStore, PoolDirectory, ServerStore, type KeptMove } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { fleetSnapshots } from './fleet-snapshot';
import { MoveSenderService } from './move-sender.service';
import { changedSettings, REBALANCE_DEFAULTS } from './rebalance-settings';

/** Maximum tries of a change of settings. A try fails when another caller changes the settings first. */
const MAX_TRIES = 64;

@Injectable()
export class RebalanceService {
  constructor(
    private readonly store: MoveStore,
    private readonly pools: PoolDirectory,
    private readonly serverStore: ServerStore,
    private readonly sender: MoveSenderService,
    private readonly config: CoordinatorConfig,
  ) {}

  /**
   * Changes the settings. Repeats the change if another caller has changed the settings since they were read, so that
   * both changes hold.
   * @throws BroomwagonError VALIDATION_FAILED, VERSION_MISMATCH, OVERLOADED, UNAVAILABLE
   */
  async configure(pool: PoolName, { ifVersion, ...change }: ConfigureRebalanceRequest): Promise<RebalanceSettings> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const before = await this.settings(pool);
      const { version } = before;
      const settings = changedSettings(before, change);
      if (JSON.stringify(settings) === JSON.stringify(before)) return before;
      if (ifVersion !== undefined && ifVersion !== version) {
        throw new BroomwagonError('VERSION_MISMATCH', `The settings have the version ${version}`, {
          field: 'ifVersion',
        });
      }
      await this.pools.add(pool);
      settings.version += 1;
      const text = JSON.stringify(settings);
      const stored = await this.store.settings(pool, { settings: text, ifVersion: version });
      if (stored.settings === text) return settings;
    }
    throw new BroomwagonError('OVERLOADED', 'Other callers change the settings of the rebalancer all the time');
  }

  /** @throws BroomwagonError UNAVAILABLE */
  async settings(pool: PoolName): Promise<RebalanceSettings> {
    return (await this.watched(pool)).settings;
  }

  /**
   * Settings, with the time of the latest plan that a replica has made after a trigger.
   * @throws BroomwagonError UNAVAILABLE
   */
  async watched(pool: PoolName): Promise<{ settings: RebalanceSettings; plannedAtMs?: number }> {
    const { settings = '{}', plannedAtMs } = await this.store.settings(pool);
    return { settings: { ...REBALANCE_DEFAULTS, ...(JSON.parse(settings) as object) }, plannedAtMs };
  }

  /** Makes and keeps a plan; moves nothing. @throws BroomwagonError VALIDATION_FAILED, UNAVAILABLE */
  async plan(pool: PoolName, body: PlanRebalanceRequest): Promise<RebalanceStatus> {
    const { planId, policy, tiers, limit } = body;
    const settings = changedSettings(await this.settings(pool), { policy, tiers });
    const plan = await this.makePlan(pool, settings);
    await this.keep(pool, planId, plan, computeDigest({ policy: policy ?? null, tiers: tiers ?? null }));
    return this.status(pool, { planId, limit });
  }

  /**
   * Makes a plan for the pool without keeping it; moves nothing.
   * @throws BroomwagonError VALIDATION_FAILED, UNAVAILABLE
   */
  async makePlan(pool: PoolName, settings: RebalanceSettings): Promise<RebalancePlan> {
    // Servers are read before calls. A plan ignores a call on a server that is new since then.
    const servers = await this.servers(pool);
    const { running, others } = await this.store.calls(pool);
    const plans = fleetSnapshots({ servers, running, others }, settings).map((snapshot) =>
      settings.policy === 'tier-min'
        ? planTierMin(snapshot, settings)
        : planTierCost(snapshot, { ...settings, transfer: buildTransferCost(settings) }),
    );
    return joined(plans, settings);
  }

  /** All servers of the pool, with their loads. @throws BroomwagonError UNAVAILABLE */
  async servers(pool: PoolName): Promise<ServerStatus[]> {
    const servers = new Map<string, ServerStatus>();
    for await (const page of this.serverStore.pages('list', pool)) {
      for (const server of page.servers) servers.set(server.serverId, server);
    }
    return [...servers.values()];
  }

  async keep(pool: PoolName, planId: string, plan: RebalancePlan, digest = ''): Promise<void> {
    const { moves, ...summary } = plan;
    const kept = { planId, moves, summary: JSON.stringify(summary), digest };
    await this.store.save(pool, { ...kept, keptMs: this.config.planKeptMs });
  }

  /**
   * @throws BroomwagonError PLAN_NOT_FOUND, VALIDATION_FAILED; UNAVAILABLE: some moves may be sent; repeating is safe
   */
  async execute(pool: PoolName, body: ExecuteRebalanceRequest): Promise<RebalanceStatus> {
    const { planId, moves, limit } = body;
    if (moves !== undefined) {
      const kept = { moves: keptMoves(moves), summary: '{}', digest: computeDigest(moves) };
      await this.store.save(pool, { planId, ...kept, keptMs: this.config.planKeptMs });
    }
    const { maxMovesPerRequest } = await this.settings(pool);
    await this.sender.send(pool, planId, maxMovesPerRequest);
    return this.status(pool, { planId, limit });
  }

  /** @throws BroomwagonError PLAN_NOT_FOUND, UNAVAILABLE */
  async status(pool: PoolName, body: RebalanceStatusRequest): Promise<RebalanceStatus> {
    const { planId } = body;
    const cursor = body.cursor ?? 0;
    const found = await this.store.status(pool, { planId, cursor, limit: body.limit ?? LIMITS.page });
    return {
      planId,
      ...(JSON.parse(found.summary) as RebalanceSummary),
      plannedAtMs: found.plannedAtMs,
      moves: found.moves,
      sentMoves: found.sentMoves,
      states: found.states,
      results: found.page.map(({ move, state }) => moveStatus(move, state)),
      cursor: found.cursor,
    };
  }
}

function buildTransferCost(settings: RebalanceSettings): MoveCostModel['transfer'] {
  const { kvBytesPerToken: bytesPerToken, kvBytesPerSecond: bytesPerSecond, kvSetupSeconds: setupSeconds } = settings;
  if (bytesPerToken === 0 || bytesPerSecond === 0) return undefined;
  return { bytesPerToken, bytesPerSecond, setupSeconds };
}

/** Plan of a pool, joined from the plans for servers of each weight version. */
function joined(plans: readonly RebalancePlan[], { policy }: RebalanceSettings): RebalancePlan {
  const most = (of: (plan: RebalancePlan) => number): number => Math.max(0, ...plans.map(of));
  const moves = plans.flatMap((plan) => plan.moves);
  return {
    policy,
    moves,
    tierBefore: most((plan) => plan.tierBefore),
    tierAfter: most((plan) => plan.tierAfter),
    gainSeconds: most((plan) => plan.gainSeconds),
    costSeconds: plans.reduce((sum, { costSeconds }) => sum + costSeconds, 0),
    stallSeconds: most((plan) => plan.stallSeconds),
    ...(moves.length === 0 && { reason: plans.find(({ reason }) => reason !== 'balanced')?.reason ?? 'balanced' }),
  };
}

/** Status of a move, which is kept as `<state>`, `refused:<reason>` or `moved:<times>`. */
function moveStatus(packed: string, kept: string): MoveStatus {
  const [state, detail] = kept.split(/:(.*)/s) as [MoveState, string?];
  const status: MoveStatus = { ...(JSON.parse(packed) as PlannedMove), state };
  if (detail !== undefined && state === 'refused') status.refusal = detail as MoveRefusal;
  if (detail !== undefined && state === 'moved') status.times = JSON.parse(detail) as MoveTimes;
  return status;
}

/** Moves in their stored form. @throws BroomwagonError VALIDATION_FAILED if two moves name one request or lease */
function keptMoves(moves: readonly WantedMove[]): KeptMove[] {
  const seen = new Set<string>();
  return moves.map((move, index) => {
    const kept = keptMove(move, index);
    const [field, id] = kept.leaseId === undefined ? ['requestId', kept.requestId!] : ['leaseId', kept.leaseId];
    if (seen.has(`${field} ${id}`)) throw invalidField(`moves.${index}.${field}`, `${id} is moved twice`);
    seen.add(`${field} ${id}`);
    return kept;
  });
}

function keptMove(move: WantedMove, index: number): KeptMove {
  const { requestId, leaseId, attempt, targetServerId, targetEpoch } = move;
  if ((requestId === undefined) === (leaseId === undefined)) {
    throw invalidField(`moves.${index}`, 'a move must name a request or a lease');
  }
  if (leaseId !== undefined && !/^\d+\./.test(leaseId)) {
    throw invalidField(`moves.${index}.leaseId`, `${leaseId} is not a leaseId`);
  }
  return { requestId, leaseId, attempt, toServerId: targetServerId, toEpoch: targetEpoch };
}

function computeDigest(asked: unknown): string {
  return createHash('sha256').update(JSON.stringify(asked)).digest('base64url');
}
