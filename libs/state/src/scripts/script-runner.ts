import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { BroomwagonError, type WireError } from '@broomwagon/contracts';
import type { Redis } from 'ioredis';
import { isRefusedWhenFull, loadScript } from './script-loader';
import { SeenStamps } from './seen-stamps';

/** Folder of the Lua sources, copied beside the compiled code. */
export const LUA_ROOT = join(__dirname, '..', 'lua');

/**
 * One transition in Redis. `Args` travels as JSON in ARGV[1], the reply as JSON back; the pool's root
 * key is KEYS[1], so that a script always lives in one cluster slot.
 */
export interface Script<Args extends object, Reply> {
  readonly name: string;
  /** Type only. */
  readonly types?: (args: Args) => Reply;
}

/** Names a script; the source is `lua/<name>.lua`. */
export function script<Args extends object, Reply>(name: string): Script<Args, Reply> {
  return { name };
}

/**
 * As {@link Script} for the hottest calls: ARGV are texts, the reply is a list as Redis gives it, and it never answers
 * an error. JSON would cost Redis more than the work.
 */
export interface TextScript<Reply> {
  readonly name: string;
  /** Type only. */
  readonly reply?: Reply;
}

/** Says why a Redis takes no new work in, or nothing. */
export interface MemoryGate {
  refusal(): BroomwagonError | undefined;
}

interface Source {
  text: string;
  sha: string;
  isRefusedWhenFull: boolean;
}

const STORE_FULL_RETRY_AFTER_MS = 1_000;

/** Runs scripts by EVALSHA, and sends the source once to a Redis that does not know it. */
export class ScriptRunner {
  private readonly sources = new Map<string, Source>();
  readonly stamps = new SeenStamps();

  constructor(
    private readonly redis: Redis,
    /** First part of every key, e.g. `rollout`. */
    private readonly keyPrefix: string,
    /** Asked before every script that takes new work in. */
    private readonly gate?: MemoryGate,
    private readonly luaRoot: string = LUA_ROOT,
  ) {}

  /** Root key of a pool; its braces keep all keys of the pool in one cluster slot. */
  rootKey(pool: string): string {
    return `${this.keyPrefix}:{${pool}}`;
  }

  /**
   * Runs one transition. An attachment travels as it is in ARGV[2]: bytes that JSON cannot carry.
   * @throws BroomwagonError the typed error the script answered (nothing was changed), or UNAVAILABLE when
   *   Redis did not answer in time: the transition may or may not have happened; repeating is safe. STORE_FULL: the script
   *   takes new work in, and Redis has no memory for it; nothing was changed.
   */
  async run<Args extends object, Reply>(
    target: Script<Args, Reply>,
    pool: string,
    args: Args,
    attachment?: Buffer,
  ): Promise<Reply> {
    const argv = attachment === undefined ? [toJson(args)] : [toJson(args), attachment];
    const raw = await this.evaluate(target.name, pool, argv);
    const reply = JSON.parse(String(raw)) as { error?: WireError; stamp?: unknown } & Reply;
    if (reply.error !== undefined && reply.error !== null) {
      throw BroomwagonError.fromWire({ ...reply.error, retryable: false });
    }
    if (typeof reply.stamp === 'string') this.stamps.note(pool, reply.stamp);
    return reply;
  }

  /** As {@link run}. @throws BroomwagonError UNAVAILABLE, STORE_FULL */
  runTexts<Reply>(target: TextScript<Reply>, pool: string, argv: readonly string[]): Promise<Reply> {
    return this.evaluate(target.name, pool, argv) as Promise<Reply>;
  }

  private async evaluate(name: string, pool: string, argv: readonly (string | Buffer)[]): Promise<unknown> {
    const source = this.source(name);
    const refusal = source.isRefusedWhenFull ? this.gate?.refusal() : undefined;
    if (refusal) throw refusal;
    const key = this.rootKey(pool);
    try {
      return await this.redis.evalsha(source.sha, 1, key, ...argv);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw asTyped(name, error);
      return await this.redis.eval(source.text, 1, key, ...argv).catch((cause: unknown) => {
        throw asTyped(name, cause);
      });
    }
  }

  private source(name: string): Source {
    let source = this.sources.get(name);
    if (!source) {
      const text = loadScript(this.luaRoot, name);
      source = {
        text,
        sha: createHash('sha1').update(text).digest('hex'),
        isRefusedWhenFull: isRefusedWhenFull(text),
      };
      this.sources.set(name, source);
    }
    return source;
  }
}

/** JSON that Redis can read: half a surrogate pair, as a text of an engine may hold, becomes U+FFFD. */
function toJson(args: object): string {
  const json = JSON.stringify(args);
  if (!json.includes('\\ud')) return json;
  return JSON.stringify(args, (_, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value));
}

function asTyped(name: string, cause: unknown): BroomwagonError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  if (reason.startsWith('OOM')) return storeFull('Redis has reached its maxmemory', cause);
  // A Lua error is a defect of ours, not an outage: it must not be retried as one.
  const code = /^(ERR|WRONGTYPE|user_script)/.test(reason) ? 'INTERNAL' : 'UNAVAILABLE';
  return new BroomwagonError(code, `Redis did not run ${name}: ${reason}`, { cause });
}

/** @param says how full it is */
export function storeFull(says: string, cause?: unknown): BroomwagonError {
  return new BroomwagonError('STORE_FULL', `${says}: no new work is taken until memory is free`, {
    cause,
    retryAfterMs: STORE_FULL_RETRY_AFTER_MS,
  });
}
