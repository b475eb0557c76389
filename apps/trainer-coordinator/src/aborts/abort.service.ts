import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { LIMITS, type AbortRequestsReply, type AbortRequestsRequest, type PoolName } from '@broomwagon/contracts';
import { MessagingClient } from '@broomwagon/messaging';
import { attemptAll, failpoint } from '@broomwagon/platform';
import {
  AbortStore,
  PoolDirectory,
  toRefusal,
  type AbortCommands,
  type AbortResultsPage,
  type DueWork,
  type RepeatPage,
} from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { ServerFences } from '../commands/server-fences';
import { WorkerCommands } from '../commands/worker-commands';
import { PagedWork } from '../upkeep/paged-work';
import { parseSelector } from './abort-selector';

const DEFAULT_REASON = 'abort';
/** Shortest and longest pause between two reads of the confirmations of a page, milliseconds. */
const FIRST_LOOK_MS = 1;
const LONGEST_LOOK_MS = 100;
const GROWTH = 1.5;

/**
 * Aborts requests. The abort is recorded before any request is stopped, so that a replica continues the abort if this
 * process dies. All replicas may run the later steps at once.
 */
@Injectable()
export class AbortService {
  private readonly logger = new Logger(AbortService.name);

  constructor(
    private readonly aborts: AbortStore,
    private readonly pools: PoolDirectory,
    private readonly commands: WorkerCommands,
    private readonly fences: ServerFences,
    private readonly messaging: MessagingClient,
    private readonly metrics: CoordinatorMetrics,
    private readonly config: CoordinatorConfig,
  ) {}

  /** @throws BroomwagonError VALIDATION_FAILED; UNAVAILABLE: the abort may be recorded, and repeating is safe */
  async abort(pool: PoolName, body: AbortRequestsRequest): Promise<AbortRequestsReply> {
    const { abortId } = body;
    const selector = parseSelector(body);
    // The sweep waits for the confirmations, and visits only pools of the directory.
    await this.pools.add(pool);
    const reason = body.reason ?? DEFAULT_REASON;
    const { selecting } = await this.aborts.begin(pool, {
      abortId,
      selector,
      reason,
      keptMs: this.config.abortKeptMs,
    });
    await failpoint('coordinator.abort.after-intent');
    if (selecting) await this.select(pool, abortId);
    const { results, cursor } = await this.confirmed(pool, body);
    return { abortId, results, cursor };
  }

  /** Resolves with a page of results when all its requests have ended, or when the wait of the caller is over. */
  private async confirmed(pool: PoolName, body: AbortRequestsRequest): Promise<AbortResultsPage> {
    const page = { abortId: body.abortId, cursor: body.cursor ?? 0, limit: body.limit ?? LIMITS.page };
    const endsAtMs = Date.now() + (body.waitMs ?? 0);
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(GROWTH * pauseMs, LONGEST_LOOK_MS)) {
      const results = await this.aborts.results(pool, page);
      const leftMs = endsAtMs - Date.now();
      if (results.aborting === 0 || leftMs <= 0) return results;
      await delay(Math.min(pauseMs, leftMs));
    }
  }

  /** Selects all requests of an abort, and commands their holders to stop them. @throws BroomwagonError UNAVAILABLE */
  async select(pool: PoolName, abortId: string): Promise<void> {
    for await (const page of this.aborts.whileMore('select', pool, { abortId })) {
      this.tell(pool, page);
      for (const { replyTo, error } of page.answers) this.messaging.reply(replyTo, toRefusal({ error }));
      await failpoint('coordinator.abort.between-pages');
    }
  }

  /** Continues the selections of a process that died. @throws BroomwagonError UNAVAILABLE */
  @PagedWork({ order: 40, isDue: ({ aborts }) => aborts.length > 0 })
  selectDue(pool: PoolName, { aborts }: DueWork): Promise<void> {
    return attemptAll(aborts.map((abortId) => () => this.select(pool, abortId)));
  }

  /** Repeats the commands to holders, and ends overdue requests. @throws BroomwagonError UNAVAILABLE */
  @PagedWork({ order: 60, isRepeat: true, isDue: ({ aborting }) => aborting > 0 })
  async repeat(pool: PoolName): Promise<void> {
    for await (const page of this.aborts.pages('repeat', pool, { deadlineMs: this.config.abortDeadlineMs })) {
      this.tell(pool, page);
      await this.endOverdue(pool, page);
    }
  }

  /** Ends requests that live holders do not confirm as stopped. Fences the servers, so that the answer is final. */
  private async endOverdue(pool: PoolName, { overdue, overdueServers, overdueLeases }: RepeatPage): Promise<void> {
    if (overdue.length + overdueLeases.length === 0) return;
    await this.fences.fence(pool, [...overdueServers, ...overdueLeases], 'abort');
    const fenced = new Set(overdueServers.map(({ requestId }) => requestId));
    const { ended } = await this.aborts.endOverdue(pool, {
      attempts: overdue.map((one) => ({ ...one, fenced: fenced.has(one.requestId) })),
      leaseIds: overdueLeases.map(({ leaseId }) => leaseId),
    });
    this.logger.warn({ pool, requests: ended, fenced: fenced.size }, 'Aborts were not confirmed within their deadline');
    this.metrics.abortsUnconfirmed.inc({ pool }, ended);
  }

  /** Deletes dropped groups when their time to be kept is over. @throws BroomwagonError UNAVAILABLE */
  @PagedWork({ order: 80, isDue: ({ dropped }) => dropped > 0 })
  async forget(pool: PoolName): Promise<void> {
    for await (const _ of this.aborts.whileMore('forget', pool)) this.metrics.sweepPages.inc({ kind: 'forget' });
  }

  private tell(pool: PoolName, { aborts, leases }: AbortCommands): void {
    this.metrics.sweepPages.inc({ kind: 'abort' });
    this.commands.abort(pool, 'abort', aborts);
    this.commands.abortLeases(pool, 'abort', leases);
  }
}
