import { TAIL_POLICIES, WEIGHT_SYNC_MODES, type TailPolicy } from '@broomwagon/contracts';
import * as fc from 'fast-check';
import { COMMON, PASSING, STOP_TEXT } from '../../lab/engine-simulator/src/zoo/zoo-sets';

/** Dialects of the engines of a pool, by server. */
export const DIALECTS = ['vllm', 'sglang', 'vllm'] as const;
export const SERVERS = DIALECTS.length;
export const GROUPS_PER_STEP = 2;
export const TRAINERS = ['python', 'http', 'nats'] as const;
export type TrainerName = (typeof TRAINERS)[number];

/** Faults by which the next generate calls of an engine get no response (`FAULT_KINDS` of the simulator). */
const REFUSALS = ['error-429', 'error-500', 'error-400', 'html', 'hang', 'close'] as const;
/** Statuses with which all engines of a pool may refuse calls at the same time. */
export const STORM_STATUSES = [429, 500, 503] as const;
/** Faults of responses, in which the simulator ignores stop texts. */
export const CALL_FAULTS = [
  ...REFUSALS,
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
export type CallFault = (typeof CALL_FAULTS)[number];
/** Passing behaviours of the zoo in responses without tool calls. */
const ENTRIES = PASSING.filter(({ name, isAboutTools }) => !isAboutTools && !COMMON.has(name));
/** The first engine always reports good health, so that one server of the pool takes requests. */
const NOT_FIRST = 'unhealthy-while-streaming';

/** Disturbance of one engine, or change of the weights of all engines. */
export type Disturbance =
  | { kind: 'calls'; server: number; fault: CallFault; count: number; afterTokens: number }
  /** Behaviours of the zoo from the token (for `cut-at-byte`: byte) `at` on. The next `count` calls may fail by them. */
  | { kind: 'zoo'; server: number; entries: string[]; at: number; count: number }
  /** `/health` answers 503 for this long. */
  | { kind: 'unhealthy'; server: number; forMs: number }
  | { kind: 'slow'; server: number; forMs: number }
  /** The engine ends, and is started again after this long. */
  | { kind: 'death'; server: number; forMs: number }
  /** All engines refuse every call with this status for this long, and serve again afterwards. */
  | { kind: 'storm'; status: (typeof STORM_STATUSES)[number]; forMs: number }
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
  /** Stop text of all samples. */
  stop?: string;
  disturbances: { afterCalls: number; what: Disturbance }[];
}

const server = fc.nat({ max: SERVERS - 1 });
const count = fc.integer({ min: 1, max: 4 });
const forMs = fc.integer({ min: 50, max: 1_500 });

const calls = (faults: readonly CallFault[]): fc.Arbitrary<Disturbance> =>
  fc.record({
    kind: fc.constant('calls' as const),
    server,
    fault: fc.constantFrom(...faults),
    count,
    afterTokens: fc.nat({ max: 30 }),
  });

const others: fc.WeightedArbitrary<Disturbance>[] = [
  { weight: 4, arbitrary: server.chain(drawZoo) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('unhealthy', 'slow', 'death'), server, forMs }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('storm' as const),
      status: fc.constantFrom(...STORM_STATUSES),
      forMs: fc.integer({ min: 500, max: 4_000 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('weights' as const),
      mode: fc.constantFrom(...WEIGHT_SYNC_MODES),
      end: fc.constantFrom('commit', 'commit', 'rollback', 'deadline'),
      late: fc.uniqueArray(server, { maxLength: SERVERS - 1 }),
    }),
  },
];

function drawZoo(index: number): fc.Arbitrary<Disturbance> {
  const names = ENTRIES.filter(
    ({ dialects, name }) => dialects.includes(DIALECTS[index]!) && (index > 0 || name !== NOT_FIRST),
  );
  return fc.record({
    kind: fc.constant('zoo' as const),
    server: fc.constant(index),
    entries: fc.uniqueArray(fc.constantFrom(...names.map(({ name }) => name)), { minLength: 1, maxLength: 2 }),
    at: fc.nat({ max: 400 }).map((at) => (at % 3 === 0 ? at : at % 30)),
    count,
  });
}

const policy: fc.Arbitrary<TailPolicy> = fc.constantFrom(...TAIL_POLICIES).map((name) => ({
  name,
  ...(name === 'auto' ? { maxOffPolicyShare: 0.9 } : { overProvision: name === 'wait' ? 1 : 1.5 }),
  ...(name === 'fixed-concurrency' && { concurrency: 4 }),
  shortfall: 'accept-fewer' as const,
}));

/** @param trainers names of trainers that can run here */
export function schedules(trainers: readonly TrainerName[]): fc.Arbitrary<Schedule> {
  const draw = (from: readonly TrainerName[], faults: typeof CALL_FAULTS | typeof REFUSALS) => {
    const what = fc.oneof({ weight: 4, arbitrary: calls(faults) }, ...others);
    return fc.record({
      trainer: fc.constantFrom(...from),
      policy,
      disturbances: fc.array(fc.record({ afterCalls: fc.nat({ max: 12 }), what }), { minLength: 1, maxLength: 4 }),
    });
  };
  // The example trainer over NATS has no stop texts.
  const stopping = draw(
    trainers.filter((name) => name !== 'nats'),
    REFUSALS,
  ).map((schedule) => ({ ...schedule, stop: STOP_TEXT }));
  return fc.oneof({ weight: 2, arbitrary: draw(trainers, CALL_FAULTS) }, { weight: 1, arbitrary: stopping });
}
