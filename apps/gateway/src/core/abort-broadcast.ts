import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { gatewaySubject, idFault, MAX_COMPOSED_ID_BYTES, type WorkerId } from '@broomwagon/contracts';
import { MessagingClient, type ClientSubscription } from '@broomwagon/messaging';
import { GatewayConfig } from '../gateway.config';
import { GenerationClaims } from './generation-claims';
import { type AbortTarget, GenerationRegistry } from './generation-registry';

/** Message between replicas: an abort, unless `isFound` or `taken` is set. */
type AbortMessage = AbortTarget & {
  /** The sender has no generation of the id: the request may be on its way. */
  isEarly?: boolean;
  /** The sender had the generation of an earlier abort. */
  isFound?: boolean;
  /** `uid` of a generation whose request the sender has taken over. */
  taken?: string;
  from?: WorkerId;
};

/** Brings aborts to the replica that runs the generation: all replicas of the pool get every abort. */
@Injectable()
export class AbortBroadcast implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(AbortBroadcast.name);
  private readonly subject: string;
  private subscription: ClientSubscription | undefined;

  constructor(
    private readonly messaging: MessagingClient,
    private readonly generations: GenerationRegistry,
    private readonly claims: GenerationClaims,
    private readonly config: GatewayConfig,
  ) {
    this.subject = gatewaySubject(config.pool, 'abort');
  }

  onApplicationBootstrap(): void {
    const onError = (error: unknown): void => this.logger.warn({ err: error }, 'An abort was not read');
    this.generations.onAbortTaken = (target) => this.send({ ...target, isFound: true });
    this.claims.onTaken = (taken) => this.send({ taken });
    this.subscription = this.messaging.subscribe(this.subject, (message: AbortMessage) => this.take(message), {
      onError,
    });
  }

  beforeApplicationShutdown(): void {
    this.subscription?.unsubscribe();
  }

  /**
   * Stops the generations of this replica at once, and asks the other replicas to stop theirs: another replica may have
   * taken the request over, and ids of `X-Request-Id` are not unique. If no replica has the id, all replicas remember
   * it, because its request may be on its way. A text that is no valid id aborts nothing.
   * @throws BroomwagonError UNAVAILABLE
   */
  abort(target: AbortTarget): void {
    if (target.id !== undefined && idFault(target.id, MAX_COMPOSED_ID_BYTES, 'composed') !== undefined) return;
    const isEarly = this.generations.abort(target) === 0 && target.id !== undefined && !target.isPrefix;
    if (isEarly) this.generations.remember(target);
    this.send({ ...target, isEarly });
  }

  private send(message: AbortMessage): void {
    this.messaging.publish(this.subject, { ...message, from: this.config.workerId });
  }

  private take({ isEarly, isFound, taken, from, ...target }: AbortMessage): void {
    if (from === this.config.workerId) return;
    if (taken !== undefined) return this.generations.lose(taken);
    if (isFound) return this.generations.forget(target);
    const stopped = this.generations.abort(target);
    if (!isEarly) return;
    if (stopped > 0) this.send({ ...target, isFound: true });
    else this.generations.remember(target);
  }
}
