import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { BroomwagonError, isBroomwagonError } from '@broomwagon/contracts';
import { unlessAborted, type WorkerEpoch } from '@broomwagon/generation';
import { retryDelayMs } from '@broomwagon/messaging';
import { hashOfIdentity, type PartialClaimReply, PartialOwnerStore } from '@broomwagon/state';
import { GatewayConfig } from '../gateway.config';
import { GatewayMetrics } from '../gateway-metrics';
import { ChoiceClaims } from './choice-claims';
import { asOurs } from './continuation';
import type { Generation } from './generation';
import { toSaveIdentity, PartialSaves } from './partial-saves';
import type { GenerationEnd } from './response-parts';

/**
 * Expiry of claims, milliseconds, longer than any response: no other mechanism removes the claims of a killed replica.
 */
const KEPT_MS = 86_400_000;
/**
 * Interval at which a repeated request checks whether the first request has ended in the other replica, milliseconds.
 */
const LOOK_MS = 250;
const RETRY_AFTER_MS = 1_000;

/**
 * Gives a request with an id of its client one generation in all replicas. A repeat at another replica takes the
 * request over, with the saved tokens, if the first request has no client or its epoch has ended. Otherwise the repeat
 * waits for a time, and is refused.
 */
@Injectable()
export class GenerationClaims {
  private readonly logger = new Logger(GenerationClaims.name);
  /** Generations that hold their request, with the epoch of this replica that claimed it. */
  private readonly held = new Map<Generation, WorkerEpoch>();
  /** Generations that may hold their request: a claim was not answered, or is of an epoch that has ended. */
  private readonly unsure = new Set<Generation>();
  /** Ended generations whose responses nobody has read: a repeat at another replica gets the saved response. */
  private readonly unread = new Set<Generation>();
  /** Generations whose last client has disconnected and may repeat its request: another replica may take it over. */
  private readonly clientless = new WeakSet<Generation>();
  /** Claims of choices of one request, by generation. */
  private readonly choices = new WeakMap<Generation, ChoiceClaims>();
  /** The newest epoch of this replica. */
  private worker: WorkerEpoch | undefined;
  /** Called when a generation of another replica has lost its request. */
  onTaken: (uid: string) => void = () => undefined;

  constructor(
    private readonly owners: PartialOwnerStore,
    private readonly saves: PartialSaves,
    private readonly metrics: GatewayMetrics,
    private readonly config: GatewayConfig,
  ) {}

  /** Lets the choices of one request, in their order, claim the request together. */
  joinChoices(generations: readonly Generation[]): void {
    const claims = new ChoiceClaims(generations[0]!, generations.length);
    for (const generation of generations) this.choices.set(generation, claims);
  }

  /**
   * Claims the request before a call of an engine. An epoch that has expired may have lost the request.
   * @returns the error that ends the generation; undefined also if the generation is stopped
   */
  async take(generation: Generation, worker: WorkerEpoch): Promise<BroomwagonError | undefined> {
    const choices = this.choices.get(generation);
    if (choices === undefined) return this.takeOne(generation, worker);
    if (choices.first !== generation) {
      const refusal = await unlessAborted(generation.signal, choices.settled);
      return refusal ?? this.takeOne(generation, worker);
    }
    const refusal = await this.takeOne(generation, worker);
    choices.settle(refusal);
    return refusal;
  }

  private async takeOne(generation: Generation, worker: WorkerEpoch): Promise<BroomwagonError | undefined> {
    this.worker = worker;
    if (toSaveIdentity(generation) === undefined) return undefined;
    if (this.held.get(generation)?.workerEpoch === worker.workerEpoch) return undefined;
    const isFirst = !this.held.delete(generation);
    if (!isFirst) this.unsure.add(generation);
    const beganAtMs = performance.now();
    const isLate = (limitMs: number): boolean => performance.now() - beganAtMs > limitMs;
    for (let [tries, isWaiting] = [0, false]; !generation.signal.aborted; tries += 1) {
      let reply: PartialClaimReply | undefined;
      try {
        reply = await this.claim(generation, worker, isWaiting);
        this.unsure.delete(generation);
      } catch (error) {
        this.unsure.add(generation);
        const isFinal = !isBroomwagonError(error) || !error.retryable;
        if (isFinal || isLate(this.config.noServerDeadlineMs)) return asOurs(error as Error);
      }
      if (reply?.state === 'claimed') {
        this.begin(generation, worker, reply, isFirst);
        return undefined;
      }
      if (reply !== undefined) {
        isWaiting = true;
        if (reply.state !== 'held' || isLate(2 * this.config.workerTtlMs)) return this.refusal(generation, reply);
      }
      const pauseMs = reply === undefined ? retryDelayMs(tries, 0, {}) : LOOK_MS;
      await delay(pauseMs, undefined, { signal: generation.signal }).catch(() => undefined);
    }
    return undefined;
  }

  /**
   * Records that the last client has disconnected, or that a client has returned. Without a client, another replica may
   * take the request over.
   */
  async setUnread(generation: Generation, isUnread: boolean): Promise<void> {
    if (isUnread) this.clientless.add(generation);
    else this.clientless.delete(generation);
    const { end } = generation;
    // A response with a reader released its claim at its end.
    const isReleased =
      !this.held.has(generation) && isUnread && end !== undefined && toSaveIdentity(generation) !== undefined;
    const worker = isReleased ? this.worker : this.held.get(generation);
    if (worker === undefined) return;
    if (isUnread && !isReleased) void (end ? this.saves.keepWhole(generation, end) : this.saves.keep(generation));
    try {
      const { state } = await this.claim(generation, worker);
      if (state === 'held' || state === 'other') generation.lose();
      else if (isReleased) {
        this.held.set(generation, worker);
        await this.release(generation, end);
      }
    } catch (error) {
      this.logger.warn({ id: generation.id, err: error }, 'The claim was not changed');
    }
  }

  /**
   * Ends the claim before the end of a generation: tokens are kept if the client can repeat the request, else removed.
   * Never throws.
   */
  async end(generation: Generation, end: GenerationEnd): Promise<void> {
    const isRepeatable = end.reason === 'error' && end.error.retryable;
    const keepsSaved = this.isOurs(generation) && isRepeatable && (await this.saves.keep(generation));
    this.saves.end(generation);
    // A choice keeps its claim until all choices end: the claim also shows that the client has disconnected.
    const release = (): Promise<void> => this.release(generation, end, keepsSaved);
    await (this.choices.get(generation)?.end(generation, release) ?? release());
  }

  /** Drops the claim of an unread response, because no request can join the generation any more. */
  async forget(generation: Generation): Promise<void> {
    this.clientless.delete(generation);
    if (this.unread.delete(generation)) await this.drop(generation, false);
  }

  /**
   * Releases a claim at the end. A whole response that nobody has read keeps its claim, so that a repeat at another
   * replica finds the response.
   */
  private async release(generation: Generation, end: GenerationEnd, keepsSaved = false): Promise<void> {
    const { held, clientless } = this;
    const isKept = held.has(generation) && clientless.has(generation) && generation.stoppedBy === undefined;
    const isSaved = isKept && (await this.saves.keepWhole(generation, end));
    // A client may have returned meanwhile.
    if (isSaved && clientless.has(generation)) this.unread.add(generation);
    else await this.drop(generation, keepsSaved);
  }

  private async drop(generation: Generation, keepsSaved: boolean): Promise<void> {
    const isOurs = this.isOurs(generation);
    this.held.delete(generation);
    this.unsure.delete(generation);
    if (isOurs) await this.sendRelease(generation, keepsSaved);
  }

  /** Whether the generation holds its request, or may hold it. */
  private isOurs(generation: Generation): boolean {
    return (this.held.has(generation) || this.unsure.has(generation)) && !generation.isLost;
  }

  private begin(generation: Generation, worker: WorkerEpoch, reply: PartialClaimReply, isFirst: boolean) {
    this.held.set(generation, worker);
    if (isFirst) this.saves.begin(generation, reply);
    const { from } = reply;
    if (from === undefined) return;
    this.metrics.elsewhere.inc({ identity: generation.repeat!.kind, outcome: 'taken' });
    this.onTaken(from);
  }

  private refusal({ repeat }: Generation, { state }: PartialClaimReply): BroomwagonError {
    if (state === 'other') {
      return new BroomwagonError('IDEMPOTENCY_KEY_REUSED', 'The id belongs to a running request with another body');
    }
    this.metrics.elsewhere.inc({ identity: repeat!.kind, outcome: 'refused' });
    const message = 'Another connection has got the response to this request at another replica, or gets it now';
    return new BroomwagonError('REQUEST_IN_PROGRESS', message, { retryAfterMs: RETRY_AFTER_MS });
  }

  private claim(generation: Generation, worker: WorkerEpoch, isWaiting = false): Promise<PartialClaimReply> {
    const { uid } = generation;
    const isUnread = this.clientless.has(generation);
    const { digest } = generation.repeat!;
    const own = { identity: hashOfIdentity(toSaveIdentity(generation)!), generation: uid, digest, isUnread };
    return this.owners.claim(this.config.pool, { isWaiting, expiresMs: KEPT_MS, ...own, ...worker });
  }

  /**
   * Releases a claim. The caller waits for the first try, so that a client may use its id again. Without Redis the
   * release is repeated until the claim has expired.
   */
  private async sendRelease(
    generation: Generation,
    keepsSaved: boolean,
    tries = 0,
    untilMs = performance.now() + KEPT_MS,
  ): Promise<void> {
    const identity = hashOfIdentity(toSaveIdentity(generation)!);
    try {
      await this.owners.release(this.config.pool, { identity, generation: generation.uid, keepsSaved });
    } catch (error) {
      this.logger.warn({ id: generation.id, err: error }, 'The claim was not released');
      if (performance.now() > untilMs) return;
      const again = () => void this.sendRelease(generation, keepsSaved, tries + 1, untilMs);
      setTimeout(again, retryDelayMs(tries, 0, {})).unref();
    }
  }
}
