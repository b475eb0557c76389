import { Logger } from '@nestjs/common';
import type { BroomwagonError } from '@broomwagon/contracts';
import type { Redis } from 'ioredis';
import { listPrimaries, type RedisClient } from './redis-cluster';
import { storeFull, type MemoryGate } from './library/function-runner';

/**
 * Default share of `maxmemory` from which no new work is taken in. The rest is for transitions that end work, which
 * need little memory.
 */
const FULL_SHARE = 0.9;
/** Share of `maxmemory` that must become free before a full Redis takes in work, so that the gate changes seldom. */
const MUST_COME_FREE_SHARE = 0.03;
const LOOK_INTERVAL_MS = 1_000;

/** Memory of a Redis, from `INFO memory`. */
export interface MemoryUse {
  usedBytes: number;
  /** `maxmemory`; 0: unlimited. */
  maxBytes: number;
}

/**
 * Watches the memory of one Redis, or of the fullest primary of a Cluster, and closes the gate for new work at 90 % of
 * `maxmemory`, or another share. A Redis without a limit is never full. While Redis does not answer, the last state
 * holds.
 */
export class RedisMemory implements MemoryGate {
  private readonly logger = new Logger(RedisMemory.name);
  private timer?: NodeJS.Timeout;
  private use: MemoryUse = { usedBytes: 0, maxBytes: 0 };
  private full = false;

  constructor(
    private readonly redis: RedisClient,
    /** Name of this Redis in logs and errors. */
    private readonly name = 'Redis',
    /** Called after every check. */
    private readonly onLook: (use: MemoryUse) => void = () => undefined,
    private readonly fullShare = FULL_SHARE,
  ) {}

  /** Checks the memory at once and then every second, until `stop`. */
  start(): void {
    if (this.timer) return;
    this.timer = setInterval(() => void this.look().catch(() => undefined), LOOK_INTERVAL_MS).unref();
    void this.look().catch(() => undefined);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Checks the memory once. @throws Error when Redis does not answer */
  async look(): Promise<MemoryUse> {
    const uses = await Promise.all(listPrimaries(this.redis).map(readMemoryUse));
    this.use = uses.toSorted((one, other) => computeShare(other) - computeShare(one))[0] ?? this.use;
    const before = this.full;
    this.full = computeShare(this.use) >= this.fullShare - (before ? MUST_COME_FREE_SHARE : 0);
    if (this.full && !before) this.logger.error(`${this.fullness()}: new work is refused until memory is free`);
    if (!this.full && before) this.logger.log(`${this.fullness()}: new work is accepted again`);
    this.onLook(this.use);
    return this.use;
  }

  /** Bytes until Redis counts as full; Infinity without a limit. */
  freeBytes(): number {
    const { usedBytes, maxBytes } = this.use;
    return maxBytes > 0 ? Math.max(0, maxBytes * this.fullShare - usedBytes) : Infinity;
  }

  refusal(): BroomwagonError | undefined {
    return this.full ? storeFull(this.fullness()) : undefined;
  }

  private fullness(): string {
    const { usedBytes, maxBytes } = this.use;
    const percent = Math.round(computeShare(this.use) * 100);
    return `${this.name} uses ${percent} % of its maxmemory (${usedBytes} of ${maxBytes} bytes)`;
  }
}

async function readMemoryUse(primary: Redis): Promise<MemoryUse> {
  const info = parseInfo(await primary.info('memory'));
  // Redis does not count buffers for replicas and the append-only file against the limit.
  const usedBytes = Number(info.get('used_memory') ?? 0) - Number(info.get('mem_not_counted_for_evict') ?? 0);
  return { usedBytes, maxBytes: Number(info.get('maxmemory') ?? 0) };
}

function computeShare({ usedBytes, maxBytes }: MemoryUse): number {
  return maxBytes > 0 ? usedBytes / maxBytes : 0;
}

function parseInfo(info: string): Map<string, string> {
  return new Map(
    info.split(/\r?\n/).flatMap((line) => {
      const colon = line.indexOf(':');
      return colon > 0 ? [[line.slice(0, colon), line.slice(colon + 1)] as const] : [];
    }),
  );
}
