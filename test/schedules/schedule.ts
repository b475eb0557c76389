import { TAIL_POLICIES, WEIGHT_SYNC_MODES, type TailPolicy } from '@broomwagon/contracts';
import * as fc from 'fast-check';

export const SERVERS = 3;
export const GROUPS_PER_STEP = 2;
export const TRAINERS = ['python', 'http', 'nats'] as const;
export type TrainerName = (typeof TRAINERS)[number];

/** Faults that hit the next generate calls of an engine (`FAULT_KINDS` of the simulator). */
const CALL_FAULTS = [
  'error-429',
  'error-500',
  'error-400',
  'html',
  'hang',
  'close',
  'close-mid-stream',
  'end-mid-stream',
  'done-mid-stream',
  'stall',
  'stall-unnoticed',
  'error-in-stream',
  'long-line',
  'late',
  'abort-500',
] as const;
/** Behaviours of the zoo that hit generate calls, for engines that are full. */
const FULL = ['full-429', 'full-503', 'full-retry-after'] as const;

/** Disturbance of one engine, or change of the weights of all engines. */
export type Disturbance =
  | { kind: 'calls'; server: number; fault: (typeof CALL_FAULTS)[number]; count: number; afterTokens: number }
  | { kind: 'full'; server: number; entry: (typeof FULL)[number]; count: number }
  /** `/health` answers 503 for this long. */
  | { kind: 'unhealthy'; server: number; forMs: number }
  | { kind: 'slow'; server: number; forMs: number }
  /** The engine ends, and is started again after this long. */
  | { kind: 'death'; server: number; forMs: number }
  /**
   * New weights. `commit`: the engines in `late` get and report them only after the commit. `deadline`: the trainer
   * loads all engines but these, reports nothing until the deadline has passed, and then begins again.
   */
  | {
      kind: 'weights';
      mode: (typeof WEIGHT_SYNC_MODES)[number];
      end: 'commit' | 'rollback' | 'deadline';
      late: number[];
    };

/** One job with its disturbances. Each begins when the engines have got `afterCalls` calls. */
export interface Schedule {
  trainer: TrainerName;
  policy: TailPolicy;
  disturbances: { afterCalls: number; what: Disturbance }[];
}

const server = fc.nat({ max: SERVERS - 1 });
const count = fc.integer({ min: 1, max: 4 });
const forMs = fc.integer({ min: 50, max: 1_500 });

const disturbance: fc.Arbitrary<Disturbance> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('calls' as const),
      server,
      fault: fc.constantFrom(...CALL_FAULTS),
      count,
      afterTokens: fc.nat({ max: 30 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('full' as const), server, entry: fc.constantFrom(...FULL), count }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('unhealthy', 'slow', 'death'), server, forMs }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('weights' as const),
      mode: fc.constantFrom(...WEIGHT_SYNC_MODES),
      end: fc.constantFrom('commit', 'commit', 'rollback', 'deadline'),
      late: fc.uniqueArray(server, { maxLength: SERVERS - 1 }),
    }),
  },
);

const policy: fc.Arbitrary<TailPolicy> = fc.constantFrom(...TAIL_POLICIES).map((name) => ({
  name,
  ...(name === 'auto' ? { maxOffPolicyShare: 0.9 } : { overProvision: name === 'wait' ? 1 : 1.5 }),
  ...(name === 'fixed-concurrency' && { concurrency: 4 }),
  shortfall: 'accept-fewer' as const,
}));

/** @param trainers names of trainers that can run here */
export function schedules(trainers: readonly TrainerName[]): fc.Arbitrary<Schedule> {
  return fc.record({
    trainer: fc.constantFrom(...trainers),
    policy,
    disturbances: fc.array(fc.record({ afterCalls: fc.nat({ max: 12 }), what: disturbance }), {
      minLength: 1,
      maxLength: 4,
    }),
  });
}
