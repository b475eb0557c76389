import { Logger } from '@nestjs/common';
import { BroomwagonError, type Dependency, outages } from '@broomwagon/contracts';
import { UNANSWERED } from './bounded-redis';
import { BoundedCluster, listPrimaries, type RedisClient } from './redis-cluster';
import { redisAdvice } from './redis-access';

/**
 * Time after which a refusal of credentials is final, milliseconds: a process reads its environment only at its start.
 */
const REFUSED_FOR_GOOD_MS = 120_000;
/** Pause between two pings of a Redis that has left a command without an answer, milliseconds. */
const PING_EVERY_MS = 500;

/**
 * The outages of one connection to Redis: the connection is lost, or a command gets no answer. Logs once in an outage
 * why Redis refuses the connection, if an operator has to change something. Nodes of a Cluster come and go; only the
 * loss of all nodes counts.
 */
export class RedisLink {
  private readonly logger = new Logger('Redis');
  private readonly name: string;
  private readonly dependency: Dependency;
  private isLost = false;
  private readyAtMs = -Infinity;
  private refusedAtMs: number | undefined;
  private advice: string | undefined;
  private cause: string | undefined;
  private pinging: NodeJS.Timeout | undefined;

  /**
   * @param onRefusedForGood called once: a restart of the process may bring other credentials
   * @param contents name of the data in this Redis, for a process with links to several
   */
  constructor(
    private readonly redis: RedisClient,
    private readonly onRefusedForGood: (error: BroomwagonError) => void,
    contents?: string,
    private readonly refusedForGoodMs = REFUSED_FOR_GOOD_MS,
  ) {
    const server = nameServer(redis);
    this.dependency = { name: server, purpose: contents };
    this.name = server + (contents === undefined ? '' : ` (${contents})`);
    redis.on('ready', () => {
      this.readyAtMs = performance.now();
      this.end();
    });
    redis.on('error', (error: Error) => this.note(error));
    redis.on('reconnecting', () => this.begin(this.cause ?? 'the connection was closed'));
    redis.on(UNANSWERED, (error: Error, timeoutMs: number) => this.beginSilent(error, timeoutMs));
    redis.on('end', () => {
      clearTimeout(this.pinging);
      outages.forget(server, this);
    });
  }

  /** Why no call through this link would work, for readiness; undefined while the link is up. */
  problem(): string | undefined {
    return this.isLost ? `${this.name}: ${this.cause ?? 'not connected'}` : undefined;
  }

  private begin(cause: string): void {
    this.isLost = true;
    outages.begin(this.dependency, cause, this);
  }

  /** A connection that is up does not show when Redis answers again, so Redis is pinged until it does. */
  private beginSilent({ message }: Error, timeoutMs: number): void {
    // A command that is older than the connection has waited for the connection.
    if (this.isLost || performance.now() - this.readyAtMs < timeoutMs) return;
    this.cause = `no answer: ${message}`;
    this.begin(this.cause);
    this.pingLater();
  }

  private pingLater(): void {
    clearTimeout(this.pinging);
    this.pinging = setTimeout(() => void this.ping(), PING_EVERY_MS).unref();
  }

  private async ping(): Promise<void> {
    try {
      await Promise.all(listPrimaries(this.redis).map((primary) => primary.ping()));
      this.end();
    } catch {
      if (this.isLost) this.pingLater();
    }
  }

  private end(): void {
    clearTimeout(this.pinging);
    this.isLost = false;
    this.refusedAtMs = this.cause = this.advice = undefined;
    outages.end(this.dependency.name, this);
  }

  private note(error: Error): void {
    const advice = redisAdvice(error);
    this.cause = advice ?? error.message;
    if (advice === undefined || !this.isLost) return;
    const now = performance.now();
    this.refusedAtMs ??= now;
    if (advice !== this.advice) this.logger.error(`${this.name}: ${advice}`);
    this.advice = advice;
    if (/NOAUTH|WRONGPASS|invalid password/i.test(error.message)) this.endIfRefusedForGood(now);
  }

  private endIfRefusedForGood(now: number): void {
    if (now - this.refusedAtMs! < this.refusedForGoodMs) return;
    this.onRefusedForGood(new BroomwagonError('UNAVAILABLE', `${this.name}: ${this.cause}`));
  }
}

function nameServer(redis: RedisClient): string {
  if (redis instanceof BoundedCluster) return `the Redis Cluster of ${redis.hosts.map(joinAddress).join(', ')}`;
  const { host, port, sentinels, name } = redis.options;
  return sentinels
    ? `Redis ${name} of the Sentinels ${sentinels.map(joinAddress).join(', ')}`
    : `Redis at ${host}:${port}`;
}

function joinAddress({ host, port }: { host?: string; port?: number }): string {
  return `${host}:${port}`;
}
