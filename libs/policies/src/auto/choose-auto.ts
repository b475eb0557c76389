import type { AutoBound, AutoChoice, AutoReason, AutoRow } from '@broomwagon/contracts';
import { type AutoState, type ControlInput, type FixedPolicyName, HISTORY_STEPS, type TailControl } from '../tail';
import { AUTO_STEP, type AutoPolicy, brokenBounds, type Learned, predictRows } from './predict-rows';
import { type RecordedRound, collectRecording, buildReplay } from './recorded-rounds';

/** Minimum closed groups for a prediction, unless there are {@link HISTORY_STEPS} closed rounds. */
const FEWEST_GROUPS = 32;
/** Minimum relative gain of speed for a change of the choice, or for more over-provision. */
const MIN_GAIN = 0.015;
const WAIT: AutoState = { name: 'wait', overProvision: 1 };
const ROUNDING = 1e-9;

/** Part of a job's past that the choice depends on. */
export interface AutoPast extends Pick<ControlInput, 'measured'> {
  control?: Pick<TailControl, 'auto'>;
  history?: readonly RecordedRound[];
}
export interface ChosenAuto {
  choice: AutoChoice;
  state: AutoState;
}

/**
 * Chooses the policy of the next round. The groups of the last rounds are replayed under each policy; policies that
 * break a bound are left out. The over-provision goes towards the fastest policy by at most {@link AUTO_STEP}. While
 * the ledger of the job breaks a bound, the choice goes back by a step, at last to `wait`, and `factors` keep by how
 * much the predictions were too low. After `isLate`, only `wait`, the last choice and its nearest candidates are
 * compared. Yields after each round read and each step replayed, so that the caller is not blocked.
 */
export function* chooseAuto(
  policy: AutoPolicy,
  past: AutoPast,
  isLate: () => boolean = () => false,
): Generator<void, ChosenAuto> {
  const { history = [], control = {}, measured } = past;
  const recording = yield* collectRecording(history);
  const groups = recording.groups.length;
  const isKnown = groups >= FEWEST_GROUPS || (groups > 0 && history.length >= HISTORY_STEPS);
  const last = control.auto ?? WAIT;
  if (!isKnown) {
    const state = { ...WAIT, ...getLearned(last) };
    return { choice: { policy: 'wait', reason: 'unknown', groups, frontier: [] }, state };
  }

  const samples = yield* buildReplay(recording);
  const over = measuredBreaks(policy, measured);
  const found = yield* predictRows(policy, samples, { last, measured, over }, isLate);
  const { rows: frontier, learned, isPartial } = found;
  // `wait` always stays, because all other policies may break a bound.
  const kept = frontier.filter(({ policy: name, breaks }) => name === 'wait' || breaks.length === 0);
  const best = fastest(kept);
  const isBack = over.length > 0;
  const { row, reason } = isBack ? stepBack(kept, last) : stepTowards(best, kept, last);
  const broken = toBrokenFields(over, frontier.find((one) => isLast(one, last))?.breaks ?? []);
  // After a step back, the ledger still has the costs of the choice before. The ledger of the first rounds proves
  // little, because groups that were cut are not trained yet.
  const isProof = isBack && !last.isBack && history.length >= HISTORY_STEPS;
  const named = { policy: best.policy, overProvision: best.overProvision };
  return {
    choice: { policy: row.policy, reason: isPartial ? 'late' : reason, ...broken, best: named, groups, frontier },
    state: {
      name: row.policy as FixedPolicyName,
      overProvision: row.overProvision,
      ...(isProof ? learned : getLearned(last)),
      ...(isBack ? { isBack } : {}),
    },
  };
}

function getLearned({ factors, leastWaste }: AutoState): Partial<Learned> {
  return { ...(factors && { factors }), ...(leastWaste === undefined ? {} : { leastWaste }) };
}

interface Chosen {
  row: AutoRow;
  reason: AutoReason;
}

/** Chooses a policy with at least a step less over-provision, because the ledger breaks a bound. */
function stepBack(kept: readonly AutoRow[], last: AutoState): Chosen {
  const most = last.overProvision - AUTO_STEP + ROUNDING;
  return { row: nearestBelow(kept, most), reason: 'measured' };
}

function isLast({ policy, overProvision }: AutoRow, last: AutoState): boolean {
  return policy === last.name && overProvision === last.overProvision;
}

function stepTowards(best: AutoRow, kept: readonly AutoRow[], last: AutoState): Chosen {
  const current = kept.find((one) => isLast(one, last));
  if (current !== undefined && best.speed < current.speed * (1 + MIN_GAIN)) return { row: current, reason: 'best' };
  const away = best.overProvision - last.overProvision;
  if (Math.abs(away) <= AUTO_STEP + ROUNDING) return { row: best, reason: 'best' };
  const next = last.overProvision + Math.sign(away) * AUTO_STEP;
  const reached = kept.filter(({ overProvision }) => Math.abs(overProvision - next) < ROUNDING);
  if (reached.length > 0) return { row: fastest(reached), reason: 'step' };
  // No policy at the next step keeps the bounds.
  if (current !== undefined) return { row: current, reason: 'step' };
  return { row: nearestBelow(kept, last.overProvision), reason: 'predicted' };
}

/** Returns the fastest row with the highest over-provision up to `most`; `wait` is always a candidate. */
function nearestBelow(kept: readonly AutoRow[], most: number): AutoRow {
  const below = kept.filter(({ policy, overProvision }) => policy === 'wait' || overProvision <= most);
  const highest = Math.max(...below.map(({ overProvision }) => overProvision));
  return fastest(below.filter(({ overProvision }) => overProvision === highest));
}

/** Returns the row with the least over-provision among rows that are nearly as fast as the fastest. */
function fastest(rows: readonly AutoRow[]): AutoRow {
  const most = Math.max(...rows.map(({ speed }) => speed));
  const near = rows.filter(({ speed }) => speed * (1 + MIN_GAIN) >= most);
  const least = Math.min(...near.map(({ overProvision }) => overProvision));
  const of = near.filter(({ overProvision }) => overProvision === least);
  return of.reduce((one, other) => (other.speed > one.speed ? other : one));
}

function measuredBreaks(policy: AutoPolicy, measured: ControlInput['measured']): AutoBound[] {
  return measured === undefined ? [] : brokenBounds(policy, { ...measured, versionSpan: 0 });
}

function toBrokenFields(measured: AutoBound[], predicted: AutoBound[]): Pick<AutoChoice, 'broken'> {
  if (measured.length + predicted.length === 0) return {};
  return { broken: { ...(measured.length > 0 && { measured }), ...(predicted.length > 0 && { predicted }) } };
}
