import { Logger } from '@nestjs/common';
import { isBroomwagonError } from './errors';

/** Something that this process needs and that does not work. */
export interface Dependency {
  /** Name with the address, without credentials, e.g. `Redis at 10.0.0.1:6379`. One name is one outage. */
  name: string;
  /** What this process keeps or does there, for a process with several such dependencies. */
  purpose?: string;
  /** Ids to search the log by. */
  ids?: Readonly<Record<string, string>>;
  /**
   * True: a service whose answers depend on other things. Its outage is logged only after {@link SUSPECTED_MS}, and not
   * while NATS or Redis does not work for this process, because that explains it.
   */
  isService?: boolean;
  /** True: a server on which nothing else depends, as an engine. Its outage explains only calls of engines. */
  isLeaf?: boolean;
}

/** Time without any answer of a service until its outage is logged, milliseconds: a frozen NATS is noticed before. */
export const SUSPECTED_MS = 7_000;
/** Time after an outage of NATS or Redis in which calls that have begun in it still fail, milliseconds. */
const SETTLING_MS = 5_000;
/** Maximum open outages; beyond it the oldest is forgotten, because engines with new ids replace those that failed. */
const MAX_OPEN = 1_000;

interface OpenOutage {
  dependency: Dependency;
  /** Who has noticed the outage, for example two connections to one Redis. It ends when it has ended for all. */
  holders: Set<unknown>;
  beganAtMs: number;
  isLogged: boolean;
}

/**
 * Outages of what this process needs: one line in the log when an outage begins, with address and cause, one line when
 * it ends, with its duration, and none between. Failed calls that an open outage explains are logged at level debug.
 */
export class Outages {
  private readonly open = new Map<string, OpenOutage>();
  /** When the last outage of NATS or Redis ended: services need some time until they answer again. */
  private basicEndedAtMs = -Infinity;

  constructor(private readonly logger: Pick<Logger, 'log' | 'warn'> = new Logger('Outages')) {}

  /** Notes that a dependency does not work. Only the first call of an outage is logged. */
  begin(dependency: Dependency, cause: string, holder: unknown = dependency.name): void {
    const outage = this.open.get(dependency.name) ?? this.add(dependency);
    outage.holders.add(holder);
    if (outage.isLogged || (dependency.isService && !this.isAnnounced(outage))) return;
    outage.isLogged = true;
    const { name, ids } = dependency;
    this.logger.warn(
      { ...ids, dependency: name, cause },
      `Outage begins: ${label(dependency)} does not work: ${cause}`,
    );
  }

  /** Forgets all outages; for tests, which share a process. */
  clear(): void {
    this.open.clear();
    this.basicEndedAtMs = -Infinity;
  }

  /** Notes that a dependency works. Costs a look-up in an empty map while nothing fails. */
  end(name: string, holder: unknown = name): void {
    const outage = this.open.get(name);
    if (!outage?.holders.delete(holder) || outage.holders.size > 0) return;
    this.open.delete(name);
    if (isBasic(outage)) this.basicEndedAtMs = performance.now();
    if (!outage.isLogged) return;
    const durationMs = Math.round(performance.now() - outage.beganAtMs);
    const text = `works again after ${(durationMs / 1_000).toFixed(1)} s`;
    this.logger.log(
      { ...outage.dependency.ids, dependency: name, durationMs },
      `Outage has ended: ${label(outage.dependency)} ${text}`,
    );
  }

  /** Forgets what a holder has noticed, without a line: it needs the dependency no longer. */
  forget(name: string, holder: unknown = name): void {
    const outage = this.open.get(name);
    if (outage?.holders.delete(holder) && outage.holders.size === 0) this.open.delete(name);
  }

  /**
   * Whether an outage that is open, or has just ended, explains an error. A line of the error would only repeat
   * the outage.
   */
  explains(error: unknown): boolean {
    const isSettling = performance.now() - this.basicEndedAtMs < SETTLING_MS;
    if (this.open.size === 0 && !isSettling) return false;
    const isOfEngine = isBroomwagonError(error) && ENGINE_CODES.has(error.code);
    if (!isOfEngine && !isOutageError(error)) return false;
    if (isSettling && !isOfEngine) return true;
    return [...this.open.values()].some(({ dependency }) => (dependency.isLeaf ?? false) === isOfEngine);
  }

  private add(dependency: Dependency): OpenOutage {
    const outage = { dependency, holders: new Set(), beganAtMs: performance.now(), isLogged: false };
    this.open.set(dependency.name, outage);
    if (this.open.size > MAX_OPEN) this.open.delete(this.open.keys().next().value!);
    return outage;
  }

  private isAnnounced({ beganAtMs }: OpenOutage): boolean {
    const sinceMs = Math.max(beganAtMs, this.basicEndedAtMs);
    return performance.now() - sinceMs >= SUSPECTED_MS && ![...this.open.values()].some(isBasic);
  }
}

/** Whether an outage is one of NATS, Redis or a store, which explains failing services. */
function isBasic({ dependency }: OpenOutage): boolean {
  return !dependency.isService && !dependency.isLeaf;
}

function label({ name, purpose }: Dependency): string {
  return purpose === undefined ? name : `${name} (${purpose})`;
}

/** Outages of this process. */
export const outages = new Outages();

/** Errors of calls of an engine that does not answer. Other errors are answers, which are logged. */
const ENGINE_CODES = new Set<string>(['ENGINE_UNREACHABLE', 'ENGINE_STALLED']);
const OUTAGE_CODES = new Set<string>(['UNAVAILABLE', 'TIMEOUT', 'OVERLOADED', 'SHUTTING_DOWN']);
/** Messages of the clients of Redis and NATS, and of Node, for a server that cannot be used now. */
const OUTAGE_MESSAGE = new RegExp(
  [
    'max retries per request|Connection is closed|Command timed out|Failed to refresh slots',
    'No node of the Redis Cluster|LOADING|READONLY|CLUSTERDOWN',
    'ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN|ENOTFOUND',
  ].join('|'),
);

/** Whether an error, or its cause, reports that a server or service did not answer. */
function isOutageError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (isBroomwagonError(error) && error.code !== 'INTERNAL') return OUTAGE_CODES.has(error.code);
  return error.name === 'NatsError' || OUTAGE_MESSAGE.test(error.message) || isOutageError(error.cause);
}
