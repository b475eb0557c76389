import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  type CancelRoundReply,
  type CancelRoundRequest,
  type CloseRoundReply,
  type Epoch,
  type JobId,
  type JobStatus,
  LIMITS,
  type ListJobsReply,
  type ListJobsRequest,
  type LongtailListReply,
  type LongtailListRequest,
  type OpenRoundReply,
  type PoolName,
  type RoundId,
  type RoundStatus,
  type TakeoverRoundReply,
  type TakeoverRoundRequest,
  sortTexts,
} from '@broomwagon/contracts';
import { transition, type NewEpoch } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';
import type {
  CheckedSubmission,
  CloseArgs,
  CutPage,
  DueWork,
  GiveBackPage,
  JobProgress,
  NamedGroup,
  NewGroup,
  OpenRoundArgs,
  ReconcileAnswer,
  ReconcileArgs,
  ResultsArgs,
  ResultsPage,
  RewardAnswer,
  RewardArgs,
  RoundName,
  SubmitAnswer,
  SubmitArgs,
  SubmitRoom,
  TakeAnswer,
} from './round.types';

/** The job of a trainer, its epoch, and the last stamp that it has seen. */
type TrainerArgs = { job: JobId; trainerEpoch?: Epoch; stamp?: string };
interface OpenScriptArgs extends NewEpoch, Omit<OpenRoundArgs, 'policy' | 'choice' | 'control'> {
  policy: string;
  deadlineMs?: number;
  digest: string;
  choice?: string;
  control?: string;
}
type SubmitScriptArgs = SubmitArgs & {
  check: boolean;
  groups: readonly NamedGroup[];
  room?: SubmitRoom;
};

/** Fields in which a repeat of `round.open` may differ: its sender, and fields from the state of the job. */
const MAY_DIFFER = new Set(
  'trainerEpoch stamp rules maxReplacedGroups keepTokens places choice control traceparent'.split(' '),
);
/** Maximum samples that one script adds, except that a group is always added completely. */
const REQUESTS_PER_SUBMIT = 32;

const open = transition<OpenScriptArgs, OpenRoundReply>('rounds/open', { hasNewEpoch: true });
const submit = transition<SubmitScriptArgs, SubmitAnswer & Partial<CheckedSubmission>>('rounds/submit');
const results = transition<ResultsArgs & { maxBytes: number }, ResultsPage>('rounds/results');

/**
 * The transitions of rounds and jobs: one script each, safe to repeat. The caller loops over pages, so that any replica
 * can continue the loop.
 */
@Injectable()
export class RoundStore extends createStoreClass({
  /** Takes one page of the long-tail queue into a round that is opening. */
  take: transition<RoundName & { stamp?: string }, TakeAnswer>('rounds/take'),
  status: transition<TrainerArgs & { roundId?: RoundId }, RoundStatus>('rounds/status'),
  /** Progress from which the next round is planned; zeros for an unknown job. `history`: see {@link JobProgress}. */
  progress: transition<TrainerArgs & { history?: boolean }, JobProgress>('rounds/progress'),
  expire: transition<object, { rounds: RoundName[] }>('rounds/expire'),
  /** Whether a payload may still be needed. */
  owns: transition<{ job: JobId; owner: string; ref: string }, { owned: boolean }>('rounds/owns'),
  /** Makes the caller the only trainer of the job from then on. */
  takeover: transition<TakeoverRoundRequest & NewEpoch, TakeoverRoundReply>('jobs/takeover', { hasNewEpoch: true }),
  /** Counts one page of groups that a trainer has trained and Redis has lost. */
  reconcile: transition<ReconcileArgs & NewEpoch, ReconcileAnswer>('rounds/reconcile', { hasNewEpoch: true }),
  /** Takes the rewards of at most 128 accepted groups. */
  reward: transition<RewardArgs, RewardAnswer>('rounds/reward'),
  close: transition<CloseArgs, CloseRoundReply>('rounds/close'),
  cancel: transition<CancelRoundRequest & { reason: string }, CancelRoundReply>('rounds/cancel'),
  /** Gives back one page of the accepted groups of a cancelled round. */
  giveBack: transition<RoundName, GiveBackPage>('rounds/give-back'),
  /** Cuts one page of the groups that a completed round did not accept. */
  cut: transition<RoundName & { cursor?: number }, CutPage>('rounds/cut'),
  /** Folds one page of a closed round into the counts and deletes it. */
  fold: transition<RoundName, { more: boolean }>('rounds/fold'),
  /** Work of the sweep. A Redis with an older stamp than the last one seen of the pool has lost data. */
  due: transition<{ stamp?: string }, DueWork>('rounds/due'),
  listLongtail: transition<LongtailListRequest, LongtailListReply>('longtail/list'),
  /**
   * One page of jobs, sorted. `idleBeforeMs`: jobs whose trainer has sent nothing since then, and jobs being deleted.
   */
  listJobs: transition<ListJobsRequest & { idleBeforeMs?: number }, ListJobsReply>('jobs/list'),
  jobStatus: transition<{ job: JobId; stamp?: string }, JobStatus>('jobs/status'),
}) {
  /** @throws GENERATION_CHANGED, ROUND_CONFLICT, ROUND_CLOSED, FENCED, JOB_NOT_FOUND, PLAN_STALE, ROUND_SETTLING */
  open(pool: PoolName, args: OpenRoundArgs): Promise<OpenRoundReply> {
    const policy = JSON.stringify(Object.fromEntries(Object.entries(args.policy).toSorted(byName)));
    const compared = Object.entries({ ...args, policy }).filter(([name]) => !MAY_DIFFER.has(name));
    return this.runner.run(open, pool, {
      ...args,
      choice: args.choice && JSON.stringify(args.choice),
      control: args.control && JSON.stringify(args.control),
      policy,
      deadlineMs: args.policy.deadlineMs,
      digest: computeDigest(Object.fromEntries(compared)),
    });
  }

  /**
   * Checks whether a page of groups may be added, and which of them are not stored yet. Stores nothing.
   * @param room room of the payloads; absent for no limit
   */
  async checkSubmit(
    pool: PoolName,
    args: SubmitArgs,
    groups: readonly NamedGroup[],
    room?: SubmitRoom,
  ): Promise<CheckedSubmission> {
    const answer = await this.runner.run(submit, pool, { ...args, check: true, groups, room });
    return { fresh: [], dispatchOrder: 'arrival', known: [], ...answer };
  }

  /**
   * Adds groups, and skips groups that are stored already. About 32 requests in all: page with {@link pagesOfGroups}.
   * @throws JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND, ROUND_CLOSED, ROUND_NOT_OPEN, DUPLICATE_GROUP, VALIDATION_FAILED
   */
  submit(pool: PoolName, args: SubmitArgs, groups: readonly NewGroup[]): Promise<SubmitAnswer> {
    return this.runner.run(submit, pool, { ...args, check: false, groups });
  }

  /**
   * A page of accepted groups; it may end before `limit`.
   * @throws GENERATION_CHANGED, FENCED, ROUND_NOT_FOUND, ROUND_CLOSED, ROUND_CANCELLED
   */
  results(pool: PoolName, args: ResultsArgs): Promise<ResultsPage> {
    return this.runner.run(results, pool, { maxBytes: LIMITS.bodyBytes / 2, ...args });
  }

  /** All jobs, sorted. */
  async allJobs(pool: PoolName, openOnly: boolean): Promise<JobId[]> {
    const all = new Set<JobId>();
    for await (const { jobs } of this.pages('listJobs', pool, { openOnly })) for (const job of jobs) all.add(job);
    return sortTexts(all);
  }
}

/** Compares entries by name. A plain sort would convert the values to texts, and a domain may be named `toString`. */
function byName([one]: [string, unknown], [other]: [string, unknown]): number {
  return one < other ? -1 : 1;
}

/**
 * Pages of at most 32 requests, or of one larger group, for one script each.
 * @param launchFactor number of launched samples / number of samples of a group
 */
export function pagesOfGroups<Group extends { samples: number }>(
  groups: readonly Group[],
  launchFactor = 1,
): Group[][] {
  const pages: Group[][] = [];
  let room = 0;
  for (const group of groups) {
    const launched = group.samples * launchFactor;
    if (room < launched) {
      pages.push([]);
      room = REQUESTS_PER_SUBMIT;
    }
    pages.at(-1)!.push(group);
    room -= launched;
  }
  return pages;
}

function computeDigest(parameters: Record<string, unknown>): string {
  return createHash('sha256')
    .update(JSON.stringify(parameters, sortTexts(Object.keys(parameters))))
    .digest('hex');
}
