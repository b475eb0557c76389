import { SET_BACK_KINDS, type SetBackKind } from '@broomwagon/testing';
import { createRandom } from '../system/chaos';
import { failpointNames } from '../system/provocations';

/** Place of payloads: the Redis that is set back, a Redis of their own, or files. */
export const PAYLOADS = ['same', 'own', 'file'] as const;
export type PayloadPlace = (typeof PAYLOADS)[number];

/** Redis is set back while a process stands at a failpoint, or once a random share of the samples is done. */
export const AT_RANDOM = 'a random moment';

const FACTORS = {
  kind: SET_BACK_KINDS,
  payloads: PAYLOADS,
  trainer: ['reference', 'plain'],
  lostMs: [1_000, 2_000, 5_000],
  moment: [AT_RANDOM, ...failpointNames()],
  /** Fate of the process at the failpoint. */
  victim: ['goes on', 'is killed'],
} as const;

/** One way to set Redis back in the middle of a run. */
export interface Condition {
  kind: SetBackKind;
  payloads: PayloadPlace;
  trainer: 'reference' | 'plain';
  lostMs: number;
  moment: string;
  victim: 'goes on' | 'is killed';
}

/** The loss is shorter than an attempt: Redis keeps the attempts, and loses only their last payloads. */
const ONLY_PAYLOADS: Condition = {
  kind: 'truncated',
  payloads: 'same',
  trainer: 'plain',
  lostMs: 300,
  moment: 'coordinator.complete.after-look',
  victim: 'goes on',
};

/** Conditions that cover every pair of values of two factors, and {@link ONLY_PAYLOADS}. */
export function pairs(): Condition[] {
  return [...cover(combinations(), listPairs), ONLY_PAYLOADS];
}

/**
 * A fifth of the moments and the shorter losses, each in at least one condition, every pair of values of the other
 * factors, and {@link ONLY_PAYLOADS}. To save time each kind has one place for payloads, and the loss is the least.
 */
export function chosenPairs(): Condition[] {
  const placeOf: Record<SetBackKind, PayloadPlace> = {
    snapshot: 'file',
    truncated: 'same',
    torn: 'own',
    failover: 'file',
  };
  const kinds = SET_BACK_KINDS.length;
  const all = combinations().filter(({ kind, payloads, lostMs, moment }) => {
    if (payloads !== placeOf[kind] || lostMs > 2_000) return false;
    if (moment === AT_RANDOM) return true;
    const index = FACTORS.moment.indexOf(moment);
    return kind === SET_BACK_KINDS[index % kinds] && index % 5 === 0;
  });
  const chosen = cover(all, ({ moment, lostMs, ...rest }) => [moment, `${lostMs} ms`, ...listPairs(rest)]);
  return [...chosen, ONLY_PAYLOADS];
}

function listPairs(condition: object): string[] {
  const values = Object.entries(condition).map(String);
  return values.flatMap((one, index) => values.slice(index + 1).map((other) => `${one} ${other}`));
}

function combinations(): Condition[] {
  return Object.entries(FACTORS).reduce<object[]>(
    (rows, [name, factor]) => rows.flatMap((row) => factor.map((value) => ({ ...row, [name]: value }))),
    [{}],
  ) as Condition[];
}

/** Shuffles items into an order that is the same each time. */
function shuffled<Item>(items: readonly Item[]): Item[] {
  const random = createRandom(1);
  return items
    .map((item) => ({ item, rank: random() }))
    .sort((one, other) => one.rank - other.rank)
    .map(({ item }) => item);
}

/** Takes the row that covers most of the uncovered units, until none is left. Of equal rows, the least loss wins. */
function cover(rows: Condition[], unitsOf: (row: Condition) => string[]): Condition[] {
  const ordered = shuffled(rows).toSorted((one, other) => one.lostMs - other.lostMs);
  const left = ordered.map((row) => ({ row, units: unitsOf(row) }));
  const covered = new Set<string>();
  const chosen: Condition[] = [];
  for (;;) {
    let best: (typeof left)[number] | undefined;
    let most = 0;
    for (const candidate of left) {
      const fresh = candidate.units.filter((unit) => !covered.has(unit)).length;
      if (fresh > most) [best, most] = [candidate, fresh];
    }
    if (best === undefined) return chosen;
    chosen.push(best.row);
    for (const unit of best.units) covered.add(unit);
  }
}
