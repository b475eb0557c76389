import type { Epoch } from '@broomwagon/contracts';
import type { LatencySummary } from '../arithmetic';

/** A worker epoch that takes the leases. */
export interface BenchWorker {
  workerId: string;
  workerEpoch: Epoch;
}

/** Where a load goes and for how long it is measured. */
interface Load {
  pool: string;
  workers: readonly BenchWorker[];
  /** Sessions the acquires name in turn; 0 = none. */
  sessions?: number;
  /** Not measured at first. */
  warmUpMs: number;
  measureMs: number;
  /** Processes whose CPU time is read at both ends of the measurement. */
  processIds?: readonly number[];
}

/** What the generator can be asked to do. */
export type Job =
  /** Requests to a raw echo, `window` at a time. */
  | (Load & { kind: 'echo'; subject: string; window: number })
  /** `lb.acquire`, `window` at a time; the leases stay. */
  | (Load & { kind: 'acquire'; window: number })
  /** `lb.acquire` and then `lb.release`, `window` pairs at a time. */
  | (Load & { kind: 'pairs'; window: number })
  /** The transition of acquire alone, once per acquire, by FCALL; the leases stay. */
  | (Load & { kind: 'script'; window: number; redisUrl: string; keyPrefix: string })
  /** Pairs at a fixed rate per second, whether answered or not. */
  | (Load & { kind: 'open'; ratePerSecond: number })
  /** `lb.acquire-many` of so many, again and again, alone. */
  | (Load & { kind: 'many'; count: number })
  | ListJob;

/** These requests to one subject, each once, `window` at a time; `perSecond` counts them all. */
export interface ListJob {
  kind: 'list';
  subject: string;
  bodies: readonly string[];
  window: number;
  processIds?: readonly number[];
  /** Hand the replies back, in the order of the bodies. */
  keepReplies?: boolean;
}

export interface JobResult extends LatencySummary {
  /** Requests, pairs or bursts that ended while it was measured. */
  completed: number;
  seconds: number;
  /** Latency of the acquire (or echo, or burst); in an open loop from the time it was due. */
  perSecond: number;
  /** CPU time of each of `processIds` while it was measured. */
  cpuSeconds: number[];
  /** Acquires whose leases are still held. */
  heldAcquireIds: string[];
  /** Of a list that keeps them. */
  replies?: string[];
}
