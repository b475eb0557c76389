import { join } from 'node:path';
import { BroomwagonError, type Epoch, type ErrorCode, newEpoch, type WireError } from '@broomwagon/contracts';
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { Cluster } from 'ioredis';
import { listPrimaries, type RedisClient } from '../redis-cluster';
import { buildLibrary, type FunctionLibrary } from './function-library';
import { refusedVersion, ReplicaMarks, unsupportedSchema } from './schema-version';
import { SeenStamps } from './seen-stamps';

/** Folder of the Lua sources: each is beside its typed call, here and where the compiled code is. */
export const LUA_ROOT = join(__dirname, '..');

/**
 * One transition in Redis. `Args` are sent as JSON in the first argument, and the reply is JSON. The root key of the
 * pool is its only key, so that a transition always stays in one cluster slot.
 */
export interface Transition<Args extends object, Reply> {
  readonly name: string;
  /** The runner passes a `newEpoch` with each call. */
  readonly hasNewEpoch?: boolean;
  /** Only for the types of `Args` and `Reply`; never set. */
  readonly types?: (args: Args) => Reply;
}

/** Argument of a transition that may start an epoch. */
export interface NewEpoch {
  newEpoch: Epoch;
}
/** Arguments from a caller, without the new epoch, which the runner creates. */
export type PassedArgs<Args> = Args extends NewEpoch ? Omit<Args, 'newEpoch'> : Args;
/** Arguments from a caller that reads all pages, without the cursor. */
export type PagedArgs<Args> = Omit<PassedArgs<Args>, 'cursor'>;

/** Names a transition; its source is `<name>.lua`. */
export function transition<Args extends object, Reply>(
  name: string,
  options: Pick<Transition<Args, Reply>, 'hasNewEpoch'> = {},
): Transition<Args, Reply> {
  return { name, ...options };
}

/** Gate for new work: the error with which a full Redis refuses it. */
export interface MemoryGate {
  refusal(): BroomwagonError | undefined;
}

export interface CallMetrics {
  took(transition: string, seconds: number): void;
  failed(code: ErrorCode): void;
}

const raise = transition<object, { version?: number }>('pools/raise-schema');
const STORE_FULL_RETRY_AFTER_MS = 1_000;
const tracer = trace.getTracer('broomwagon');

let library: FunctionLibrary | undefined;

/** The library of this version, built once. */
export function theLibrary(): FunctionLibrary {
  return (library ??= buildLibrary(LUA_ROOT));
}

/** Calls the functions of the library, and loads it into a Redis that does not know it. */
export class FunctionRunner {
  readonly stamps = new SeenStamps();
  private loading?: Promise<unknown>;

  constructor(
    private readonly redis: RedisClient,
    /** First part of every key, e.g. `rollout`. */
    private readonly keyPrefix: string,
    /** Gate that is checked before every transition that takes in new work. */
    private readonly gate?: MemoryGate,
    private readonly library = theLibrary(),
    private readonly metrics?: CallMetrics,
  ) {}

  /** Root key of a pool; its braces keep all keys of the pool in one cluster slot. */
  rootKey(pool: string): string {
    return `${this.keyPrefix}:{${pool}}`;
  }

  /**
   * Runs one transition.
   * @param attachments bytes that JSON cannot carry; sent unchanged in the arguments after the first
   * @throws BroomwagonError the typed error from the transition (nothing was changed), or UNAVAILABLE when
   *   Redis did not answer in time: the transition may or may not have happened, and a repeat is safe. STORE_FULL: the
   *   transition takes in new work, and Redis has no memory for it; nothing was changed. SCHEMA_UNSUPPORTED: the pool
   *   is of a schema that this code does not know; nothing was changed.
   */
  async run<Args extends object, Reply>(
    target: Transition<Args, Reply>,
    pool: string,
    args: PassedArgs<Args>,
    ...attachments: Buffer[]
  ): Promise<Reply> {
    const json = toJson(target.hasNewEpoch ? { newEpoch: newEpoch(), ...args } : args);
    const span = trace.getActiveSpan() && tracer.startSpan(target.name, { kind: SpanKind.CLIENT });
    const raw = await this.call(target.name, pool, [json, ...attachments])
      .catch((error: BroomwagonError) => {
        span?.setStatus({ code: SpanStatusCode.ERROR, message: error.code });
        throw error;
      })
      .finally(() => span?.end());
    const reply = JSON.parse(String(raw)) as { error?: WireError; stamp?: unknown } & Reply;
    if (reply.error !== undefined && reply.error !== null) throw this.toError(pool, reply.error);
    this.noteStamp(pool, reply.stamp);
    return reply;
  }

  /** The error that a reply has, for all or for one of its items. Notes the stamp of the error. */
  toError(pool: string, error: WireError): BroomwagonError {
    this.noteStamp(pool, (error.details as { stamp?: unknown } | undefined)?.stamp);
    return BroomwagonError.fromWire({ ...error, message: withSources(error.message), retryable: false });
  }

  private noteStamp(pool: string, stamp: unknown): void {
    if (typeof stamp === 'string') this.stamps.note(pool, stamp);
  }

  private async call(name: string, pool: string, argv: readonly (string | Buffer)[]): Promise<unknown> {
    const target = this.library.functions.get(name);
    if (!target) throw new Error(`there is no transition ${name}`);
    const refusal = target.isRefusedWhenFull ? this.gate?.refusal() : undefined;
    if (refusal) throw refusal;
    const beganAtMs = performance.now();
    try {
      return await this.fcall(target.name, pool, argv).catch(async (error: unknown) => {
        const stored = refusedVersion(error);
        if (stored === undefined) throw error;
        await this.raiseSchema(pool, stored);
        return await this.fcall(target.name, pool, argv);
      });
    } catch (error) {
      const typed = asTyped(`run ${name}`, error);
      this.metrics?.failed(typed.code);
      throw typed;
    } finally {
      this.metrics?.took(name, (performance.now() - beganAtMs) / 1_000);
    }
  }

  private fcall(name: string, pool: string, argv: readonly (string | Buffer)[]): Promise<unknown> {
    const keys = this.buildKeys(pool);
    const call = () => this.redis.fcall(name, keys.length, ...keys, ...argv);
    return call().catch(async (error: unknown) => {
      if (!isUnknownFunction(error)) throw error;
      const failure = await this.load();
      return call().catch((again: unknown) => {
        throw isUnknownFunction(again) ? (failure ?? again) : again;
      });
    });
  }

  /** Raises a pool from the previous schema version. @throws BroomwagonError SCHEMA_UNSUPPORTED */
  private async raiseSchema(pool: string, stored: number): Promise<void> {
    const { schemaVersion, functions } = this.library;
    if (stored !== schemaVersion - 1) throw unsupportedSchema(pool, stored, schemaVersion);
    await new ReplicaMarks(this.redis, this.keyPrefix, schemaVersion).checkOthers();
    await this.fcall(functions.get(raise.name)!.name, pool, ['{}']);
  }

  /**
   * While a Cluster moves the slot of a pool between two nodes, each node has some of the keys. A call with two keys
   * that are never written gets TRYAGAIN from both nodes until one node has the whole slot.
   */
  private buildKeys(pool: string): string[] {
    const root = this.rootKey(pool);
    return this.redis instanceof Cluster ? [root, `${root}:~`] : [root];
  }

  /** Calls that find the library missing at the same time load it once. @returns why it could not be loaded */
  private load(): Promise<unknown> {
    this.loading ??= loadLibrary(this.redis, this.library)
      .catch((failure: unknown) => failure)
      .finally(() => (this.loading = undefined));
    return this.loading;
  }
}

/**
 * Loads the library into every primary that lacks it.
 * @throws BroomwagonError of the first primary that refused it, after all have answered
 */
export async function loadLibrary(redis: RedisClient, { name, text } = theLibrary()): Promise<void> {
  const loaded = await Promise.allSettled(
    listPrimaries(redis).map((primary) =>
      primary.function('LOAD', text).catch((error: unknown) => {
        if (!(error instanceof Error) || !error.message.includes('already exists')) {
          throw asTyped(`load the library ${name}`, error);
        }
      }),
    ),
  );
  for (const result of loaded) if (result.status === 'rejected') throw result.reason;
}

function isUnknownFunction(error: unknown): boolean {
  return error instanceof Error && error.message.includes('Function not found');
}

/**
 * JSON that a transition can read: half a surrogate pair, as a text of an engine may hold, becomes U+FFFD, and a field
 * that is null is left out, since null is true in Lua.
 */
function toJson(args: unknown): string {
  const json = JSON.stringify(args);
  if (!json.includes('\\ud') && !json.includes(':null')) return json;
  return JSON.stringify(JSON.parse(json), (_, value: unknown) =>
    typeof value === 'string' ? value.toWellFormed() : (value ?? undefined),
  );
}

/** @param action what Redis did not do */
function asTyped(action: string, cause: unknown): BroomwagonError {
  if (cause instanceof BroomwagonError) return cause;
  removeArguments(cause);
  const reason = cause instanceof Error ? cause.message : String(cause);
  if (reason.startsWith('OOM')) return storeFull('Redis has reached its maxmemory', cause);
  // A Lua error is a defect of this code, not an outage, so it must not be retried like one.
  const isDefect = /^(ERR|WRONGTYPE|user_function)/.test(reason) && !isUnknownFunction(cause) && !isForbidden(reason);
  const code = isDefect ? 'INTERNAL' : 'UNAVAILABLE';
  const advice = isForbidden(reason) ? '; `ACL LOG` of Redis shows what its user needs' : '';
  return new BroomwagonError(code, `Redis did not ${action}: ${withSources(reason)}${advice}`, { cause });
}

/** Removes the arguments of the command from an error of ioredis: the text of the library, or prompts of a group. */
function removeArguments(error: unknown): void {
  const { command } = (error ?? {}) as { command?: { args?: unknown } };
  delete command?.args;
}

/** Whether Redis refuses a command or key to the user, in a transition or before it. */
function isForbidden(reason: string): boolean {
  return /NOPERM|ACL failure|The user executing the script can't/.test(reason);
}

/** Replaces lines of the library by the files and lines of the sources. */
function withSources(reason: string): string {
  return reason.replaceAll(
    /user_function:(\d+)/g,
    (found, line: string) => theLibrary().findSource(Number(line)) ?? found,
  );
}

/** @param fullness how full the Redis is */
export function storeFull(fullness: string, cause?: unknown): BroomwagonError {
  return new BroomwagonError('STORE_FULL', `${fullness}: new work is refused until memory is free`, {
    cause,
    retryAfterMs: STORE_FULL_RETRY_AFTER_MS,
  });
}
