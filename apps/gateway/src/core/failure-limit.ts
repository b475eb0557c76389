import { BroomwagonError, isBroomwagonError, LIMITS } from '@broomwagon/contracts';
import {
  type Acquisition,
  classifyFailure,
  type Lease,
  pauseAfterSetbacks,
  type WaitDeadline,
} from '@broomwagon/generation';
import type { GatewayConfig } from '../gateway.config';
import { asOurs } from './continuation';
import type { GenerationEnd } from './response-parts';

/** Retry-After for a client, if the engine has reported no time. */
const RETRY_AFTER_MS = 1_000;

type Limits = Pick<
  GatewayConfig,
  'maxEngineFailures' | 'noServerDeadlineMs' | 'engineFailurePauseMs' | 'engineFailureDeadlineMs'
>;

type LeasedStart = Pick<Lease, 'serverId' | 'epoch'>;

const toStart = ({ serverId, epoch }: LeasedStart): string => `${serverId} ${epoch}`;

/**
 * Limits the calls of a generation that fail in a row, without a further kept token:
 *
 * - Failures on different servers, or starts of one server, are evidence against the request.
 * - Repeated failures on the same servers, and failures while most servers fail, only cause pauses up to a limit.
 * - Calls that were not served have only a deadline, like the wait for a free server.
 * - A start of a server that has answered in a wrong dialect, without a token, gets no further calls: each call would
 *   cost a whole response and fail in the same way. The response waits for the other servers of the pool until the same
 *   deadline.
 */
export class FailureLimit {
  /** Starts of servers on which the request has failed. */
  private readonly failedStarts = new Set<string>();
  /** Errors of server starts that have sent an answer in a wrong dialect. */
  private readonly wrongStarts = new Map<string, Error>();
  private readonly servers = new Set<string>();
  /** Error of a wrong answer, while the next call must go to a server without a wrong answer. */
  private excludedFor: Error | undefined;
  private failed = 0;
  private refused = 0;
  private pausedMs = 0;
  private unserved: BroomwagonError | undefined;
  /** Deadline of the wait for a server, once a call was not served, or only servers with wrong answers took leases. */
  deadline: WaitDeadline | undefined;

  constructor(private readonly limits: Limits) {}

  /** Clears the failures, because the response has more tokens than ever before. */
  clear(): void {
    this.failedStarts.clear();
    this.wrongStarts.clear();
    this.servers.clear();
    this.excludedFor = undefined;
    this.failed = 0;
    this.refused = 0;
    this.pausedMs = 0;
    this.unserved = undefined;
    this.deadline = undefined;
  }

  /** Servers whose calls have ended badly, the latest one last. */
  get failedServers(): string[] | undefined {
    return this.servers.size === 0 ? undefined : [...this.servers].slice(-LIMITS.excludedServers);
  }

  /** Servers that must not get the next call. */
  get excludedServers(): string[] | undefined {
    return this.excludedFor && [...this.wrongServers()].slice(-LIMITS.excludedServers);
  }

  /**
   * Counts a call that ended badly.
   * @param error undefined: the engine has aborted the call by itself
   * @param lease lease of the call
   * @param about.hasProgress the call has added tokens that are kept, so its engine answers in the right dialect
   * @param about.mostServersFail most servers fail calls of other requests, so that a failure is no evidence about this
   *   request
   * @returns pause before the next call, milliseconds; undefined: the generation ends
   */
  pauseAfter(
    error: Error | undefined,
    lease: LeasedStart,
    { hasProgress = false, mostServersFail = false }: { hasProgress?: boolean; mostServersFail?: boolean } = {},
  ): number | undefined {
    const { serverId } = lease;
    this.servers.delete(serverId);
    this.servers.add(serverId);
    const kind = error === undefined ? 'failed' : classifyFailure(error);
    if (kind === 'not-served') return this.unservedPause(asOurs(error!));
    const start = toStart(lease);
    if (kind === 'wrong' && !hasProgress) this.wrongStarts.set(start, error!);
    if (kind === 'wrong' || !mostServersFail) this.failedStarts.add(start);
    const pauseMs = pauseAfterSetbacks('failed', (this.failed += 1), this.limits.engineFailurePauseMs);
    this.pausedMs += pauseMs;
    const isOver = this.failedStarts.size >= this.limits.maxEngineFailures;
    return isOver || this.pausedMs > this.limits.engineFailureDeadlineMs ? undefined : pauseMs;
  }

  /** Error for a client that has waited too long for a serving server; undefined: all calls were served. */
  private busyError(): BroomwagonError | undefined {
    if (this.unserved === undefined) return undefined;
    const { message, retryAfterMs = RETRY_AFTER_MS, details } = this.unserved;
    return new BroomwagonError('ENGINE_BUSY', message, { retryAfterMs, details, cause: this.unserved });
  }

  /** Reason why no lease was granted; after calls that were not served, with the retry time of the engine. */
  explain(acquisition: Exclude<Acquisition, { lease: Lease }>): Error | undefined {
    if (acquisition.failed === 'stopped') return undefined;
    const hasNone = isBroomwagonError(acquisition.error, 'NO_SERVER_AVAILABLE');
    if (hasNone && this.excludedFor !== undefined) return this.excludedFor;
    const busy = acquisition.failed === 'no-server' ? this.busyError() : undefined;
    return busy ?? acquisition.error;
  }

  /**
   * Whether the response goes on waiting for a server without wrong answers: such servers are registered, and none took
   * leases for as long as an acquire waits. Servers with wrong answers may have a new start, so the next acquire does
   * not exclude them.
   */
  waitsOn({ failed, error }: Exclude<Acquisition, { lease: Lease }>): boolean {
    const isAway = failed === 'no-server' && isBroomwagonError(error, 'NO_SERVER_AVAILABLE');
    if (!isAway || this.excludedFor === undefined || Date.now() >= this.deadline!.endsAtMs) return false;
    this.excludedFor = undefined;
    return true;
  }

  /**
   * Whether the lease must be given back, because its start of the server has answered in a wrong dialect. The next
   * acquire avoids only servers with wrong answers, and excludes them if no other server was avoided before.
   */
  refusesWrong(lease: LeasedStart): boolean {
    const error = this.wrongStarts.get(toStart(lease));
    if (error === undefined) return false;
    const wrong = this.wrongServers();
    const others = [...this.servers].filter((serverId) => !wrong.has(serverId));
    for (const serverId of others) this.servers.delete(serverId);
    if (others.length > 0) return true;
    this.excludedFor = error;
    this.deadline ??= { endsAtMs: Date.now() + this.limits.noServerDeadlineMs };
    return true;
  }

  private wrongServers(): Set<string> {
    return new Set([...this.wrongStarts.keys()].map((start) => start.split(' ')[0]!));
  }

  /** End of a generation that {@link pauseAfter} ends. */
  endWith(error: Error): GenerationEnd {
    const busy = classifyFailure(error) === 'not-served' ? this.busyError() : undefined;
    return { reason: 'error', error: busy ?? asOurs(error) };
  }

  private unservedPause(error: BroomwagonError): number | undefined {
    this.unserved = error;
    const pauseMs = pauseAfterSetbacks('not-served', (this.refused += 1), this.limits.engineFailurePauseMs);
    const nowMs = Date.now();
    this.deadline ??= { endsAtMs: nowMs + this.limits.noServerDeadlineMs };
    return nowMs + pauseMs > this.deadline.endsAtMs ? undefined : pauseMs;
  }
}
