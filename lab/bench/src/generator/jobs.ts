import type { Epoch } from '@broomwagon/contracts';
import type { LatencySummary } from '../arithmetic';

/** A worker epoch that takes the leases. */
export interface BenchWorker {
  workerId: string;
  workerEpoch: Epoch;
}

/** Target and times of a load. */
interface Load {
  pool: string;
  workers: readonly BenchWorker[];
  /** Number of sessions that the acquires name in turn; 0 = none. */
  sessions?: number;
  /** Time before the measurement starts. */
  warmUpMs: number;
  measureMs: number;
  /** Processes whose CPU time is read at both ends of the measurement. */
  processIds?: readonly number[];
}

/** Jobs of the generator. */
export type Job =
  /** Requests to a raw echo, `window` at a time. */
  | (Load & { kind: 'echo'; subject: string; window: number })
  /** `lb.acquire`, `window` at a time; the leases stay. */
  | (Load & { kind: 'acquire'; window: number })
  /** `lb.acquire` and then `lb.release`, `window` pairs at a time. */
  | (Load & { kind: 'pairs'; window: number })
  /** The transition of acquire alone, once per acquire, by FCALL; the leases stay. */
  | (Load & { kind: 'script'; window: number; redisUrl: string; keyPrefix: string })
  /** Pairs at a fixed rate per second, whether earlier ones are answered or not. */
  | (Load & { kind: 'open'; ratePerSecond: number })
  /** `lb.acquire-many` of `count` acquires, one call after the other, alone. */
  | (Load & { kind: 'many'; count: number })
  | ListJob;

/** Sends each of these requests once to one subject, `window` at a time; `perSecond` counts all of them. */
export interface ListJob {
  kind: 'list';
  subject: string;
  bodies: readonly string[];
  window: number;
  processIds?: readonly number[];
  /** Whether to return the replies, in the order of the bodies. */
  keepReplies?: boolean;
}

/** Result of a job, with latencies of acquires (or echoes, or bursts); in an open loop they count from the due time. */
export interface JobResult extends LatencySummary {
  /** Requests, pairs or bursts that ended during the measurement. */
  completed: number;
  seconds: number;
  perSecond: number;
  /** CPU time of each of `processIds` during the measurement. */
  cpuSeconds: number[];
  /** Acquires whose leases are still held. */
  heldAcquireIds: string[];
  /** Replies of a list with `keepReplies`. */
  replies?: string[];
}
