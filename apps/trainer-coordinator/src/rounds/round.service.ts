import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  invalidField,
  LIMITS,
  type NextRoundReply,
  type NextRoundRequest,
  type OpenRoundReply,
  type OpenRoundRequest,
  type PoolName,
  type RoundId,
  type TailPolicy,
} from '@broomwagon/contracts';
import { activeTraceparent } from '@broomwagon/messaging';
import {
  findPolicyFault,
  hasPins,
  looksBack,
  measuredCosts,
  planRound,
  resolvePolicy,
  roundRules,
  roundTerms,
  summariseLedger,
  type PlanProgress,
  type RoundTerms,
} from '@broomwagon/policies';
import { LedgerStore, PoolDirectory, RoundStore, ServerStore, type JobProgress } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { RoundSweeps } from './round-sweeps';
import { PolicyResolver } from './policy-resolver';

@Injectable()
export class RoundService {
  constructor(
    private readonly rounds: RoundStore,
    private readonly ledgers: LedgerStore,
    private readonly pools: PoolDirectory,
    private readonly servers: ServerStore,
    private readonly sweeps: RoundSweeps,
    private readonly resolver: PolicyResolver,
    private readonly config: CoordinatorConfig,
  ) {}

  /**
   * Plans the next round, and changes nothing of the job. Under `auto`, first counts the trained samples of the last
   * round in the ledger; under other policies the fold of the round counts them.
   * @throws BroomwagonError VALIDATION_FAILED; with `trainerEpoch` JOB_NOT_FOUND and FENCED; ROUND_CONFLICT while a
   *   round is not closed; ROUND_SETTLING
   */
  async next(pool: PoolName, body: NextRoundRequest): Promise<NextRoundReply> {
    checkPolicy(body.policy, body.groupsPerStep);
    checkDomains(body);
    const { openRoundId, stamp, ...progress } = await this.progress(pool, body);
    if (openRoundId !== undefined) {
      throw new BroomwagonError('ROUND_CONFLICT', `Round ${openRoundId} of the job is not closed`, {
        details: { roundId: openRoundId },
      });
    }
    // This check comes before the choice of `auto`, which takes long and does not change which groups are pinned.
    if (progress.settlingGroups > 0 && hasPins(roundRules(resolvePolicy(body.policy, {}).policy, 'short'))) {
      throw new BroomwagonError('ROUND_SETTLING', 'Cuts of groups that a bound may pin are still being confirmed', {
        retryAfterMs: 50,
      });
    }
    const resolved = await this.resolver.resolve(body.policy, progress);
    return { ...planRound(progress, body, resolved), stamp };
  }

  /** @throws BroomwagonError as the transition `rounds/open`, and VALIDATION_FAILED */
  async open(pool: PoolName, body: OpenRoundRequest): Promise<OpenRoundReply> {
    const { takeGroups, newGroups, neededGroups } = body;
    checkPolicy(body.policy);
    if (takeGroups + newGroups < neededGroups) {
      throw invalidField('neededGroups', `${neededGroups} groups are needed, and only ${takeGroups + newGroups} come`);
    }
    if (takeGroups + newGroups > LIMITS.groupsPerRound) {
      throw invalidField('newGroups', `a round has at most ${LIMITS.groupsPerRound} groups`);
    }
    // The pool is added before the round exists, so that the sweep visits every round.
    await this.pools.add(pool);
    const { orphanAfterMs = this.config.orphanAfterMs, ...round } = body;
    const traceparent = activeTraceparent();
    const terms = await this.terms(pool, body);
    const opened = await this.rounds.open(pool, { ...round, orphanAfterMs, traceparent, ...terms });
    if (opened.state !== 'opening') return opened;
    const { state, takenGroups } = await this.sweeps.open(pool, { ...body, stamp: opened.stamp });
    if (state === 'completed') this.sweeps.cutSoon(pool, body);
    return { ...opened, state, takenGroups };
  }

  /** Computes the terms again, so that the round does not depend on the replica that planned it. */
  private async terms(pool: PoolName, { policy, ...plan }: OpenRoundRequest): Promise<RoundTerms> {
    if (!looksBack(policy)) return roundTerms(policy, plan, {});
    const past = await this.progress(pool, { policy, ...plan });
    // Any other round is a repeat or is refused: the answer of the transition does not depend on the terms.
    const isNext = past.openRoundId === undefined && plan.step === past.stepsTrained + 1;
    const resolved = isNext
      ? await this.resolver.resolve(policy, past)
      : resolvePolicy(policy, { control: past.control });
    return roundTerms(policy, plan, past, resolved);
  }

  private async progress(
    pool: PoolName,
    { job, trainerEpoch, stamp, policy }: Pick<NextRoundRequest, 'job' | 'trainerEpoch' | 'stamp' | 'policy'>,
  ): Promise<PlanProgress & { openRoundId?: RoundId; stamp: string }> {
    const isAuto = policy.name === 'auto';
    const read = (history: boolean) => this.rounds.progress(pool, { job, trainerEpoch, stamp, history });
    let progress = await read(looksBack(policy) && !isAuto);
    let measured: PlanProgress['measured'];
    if (isAuto && progress.lastRoundId !== undefined) {
      // The count also records the trained groups of the last round.
      await this.ledgers.count(pool, { job, roundId: progress.lastRoundId });
      measured = measuredCosts(summariseLedger((await this.ledgers.read(pool, { job })).counters));
      progress = await read(true);
    }
    const { lastRoundId: _, ...known } = progress;
    // The store keeps these fields as opaque values.
    const fleetKvTokens = looksBack(policy) && !isAuto ? await this.fleetKvTokens(pool) : undefined;
    return { ...(known as JobProgress & Pick<PlanProgress, 'control' | 'history'>), measured, fleetKvTokens };
  }

  /** Size of all KV caches of the pool, tokens; 0 if a ready server does not report its size. */
  private async fleetKvTokens(pool: PoolName): Promise<number> {
    const reported = new Map<string, number>();
    for await (const { servers } of this.servers.pages('list', pool)) {
      for (const { serverId, state, load } of servers) {
        if (state !== 'ready') continue;
        if (load?.kvTokens === undefined) return 0;
        reported.set(serverId, load.kvTokens);
      }
    }
    return [...reported.values()].reduce((sum, tokens) => sum + tokens, 0);
  }
}

/** @param groupsPerStep absent in `round.open`, which knows only the groups that this round needs */
function checkPolicy(policy: TailPolicy, groupsPerStep?: number): void {
  const fault = findPolicyFault(policy, groupsPerStep);
  if (fault !== undefined) throw invalidField(`policy.${fault.field}`, fault.reason);
}

/** Checks the remaining groups by domain, which domain quotas need. */
function checkDomains({ policy, remainingByDomain, remainingGroups }: NextRoundRequest): void {
  const field = 'remainingByDomain';
  if (remainingByDomain === undefined) {
    if (policy.domainQuotas !== undefined) throw invalidField(field, 'is needed with policy.domainQuotas');
    return;
  }
  const counts = Object.values(remainingByDomain);
  if (!counts.every((count) => Number.isSafeInteger(count) && count >= 0))
    throw invalidField(field, 'whole numbers from 0');
  const sum = counts.reduce((total, count) => total + count, 0);
  if (sum !== remainingGroups)
    throw invalidField(field, `adds up to ${sum}, and remainingGroups is ${remainingGroups}`);
}
