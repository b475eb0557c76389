import { Logger } from '@nestjs/common';
import { BroomwagonError } from '@broomwagon/contracts';
import { BoundedCluster, type RedisClient } from './redis-cluster';
import { redisAdvice } from './redis-access';

const LOG_AGAIN_MS = 60_000;
/**
 * Time after which a refusal of credentials is final, milliseconds: a process reads its environment only at its start.
 */
const REFUSED_FOR_GOOD_MS = 120_000;

/** Times of a link; only tests shorten them. */
export interface RedisLinkTimes {
  logAgainMs: number;
  refusedForGoodMs: number;
}

/**
 * The log of the connection to Redis: a line when the connection is lost, a line when it is restored, and in between,
 * once a minute, why Redis refuses it. Nodes of a Cluster come and go; only the loss of all nodes counts.
 */
export class RedisLink {
  private readonly logger = new Logger('Redis');
  private readonly name: string;
  private lostAtMs: number | undefined;
  private refusedAtMs: number | undefined;
  private loggedAtMs = -Infinity;
  private cause: string | undefined;

  /**
   * @param onRefusedForGood called once: a restart of the process may bring other credentials
   * @param contents name of the data in this Redis, for a process with links to several
   */
  constructor(
    redis: RedisClient,
    private readonly onRefusedForGood: (error: BroomwagonError) => void,
    contents?: string,
    private readonly times: RedisLinkTimes = { logAgainMs: LOG_AGAIN_MS, refusedForGoodMs: REFUSED_FOR_GOOD_MS },
  ) {
    this.name = nameServer(redis) + (contents === undefined ? '' : ` (${contents})`);
    redis.on('ready', () => this.end());
    redis.on('error', (error: Error) => this.note(error));
    redis.on('reconnecting', () => this.begin());
  }

  /** Why no call through this link would work, for readiness; undefined while the link is up. */
  problem(): string | undefined {
    if (this.lostAtMs === undefined) return undefined;
    return `${this.name}: ${this.cause ?? 'not connected'}`;
  }

  private begin(): void {
    if (this.lostAtMs !== undefined) return;
    this.lostAtMs = performance.now();
    this.logger.warn({ cause: this.cause }, `The connection to ${this.name} is lost`);
  }

  private end(): void {
    if (this.lostAtMs !== undefined) {
      const lostMs = Math.round(performance.now() - this.lostAtMs);
      this.logger.log({ lostMs }, `The connection to ${this.name} is restored`);
    }
    this.lostAtMs = this.refusedAtMs = this.cause = undefined;
  }

  private note(error: Error): void {
    const advice = redisAdvice(error);
    this.cause = advice ?? error.message;
    if (advice === undefined || this.lostAtMs === undefined) return;
    const now = performance.now();
    this.refusedAtMs ??= now;
    if (now - this.loggedAtMs >= this.times.logAgainMs) {
      this.loggedAtMs = now;
      this.logger.error(`${this.name}: ${advice}`);
    }
    if (/NOAUTH|WRONGPASS|invalid password/i.test(error.message)) this.endIfRefusedForGood(now);
  }

  private endIfRefusedForGood(now: number): void {
    if (now - this.refusedAtMs! < this.times.refusedForGoodMs) return;
    this.onRefusedForGood(new BroomwagonError('UNAVAILABLE', `${this.name}: ${this.cause}`));
  }
}

function nameServer(redis: RedisClient): string {
  if (redis instanceof BoundedCluster) return `the Redis Cluster of ${redis.hosts.map(({ host }) => host).join(', ')}`;
  const { host, port, sentinels, name } = redis.options;
  return sentinels ? `Redis ${name} of ${sentinels.length} Sentinels` : `Redis at ${host}:${port}`;
}
