import type { JobId, RoundId } from '@broomwagon/contracts';
import { type Discrepancy, toList, type PoolLook, type Step } from './pool-look';

/** A round with its own counts and the sizes of its lists; see audit/views.lua. */
interface RoundView {
  roundId: RoundId;
  /** `gone`: the round is listed, but missing. */
  state: string;
  takesResults: boolean;
  live: number;
  accepted: number;
  leaving: number;
  isSettled: boolean;
  isFolded: boolean;
  /** The round is cancelled and drops its groups. */
  isDropped: boolean;
  listedLive: number;
  listedAccepted: number;
  listedLeaving: number;
  isSwept: boolean;
}
interface RoundsView {
  openRoundId: RoundId | false;
  settling: number;
  isRestoring: boolean;
  rounds: unknown;
}

const GROUPS_PER_PAGE = 128;

/** Checks the rounds of a job against their lists, and the job against its rounds, unless the job is being restored. */
export async function checkRounds(look: PoolLook, job: JobId): Promise<void> {
  await look.compare(
    [job],
    () => [['rounds', job]],
    (_, [view]) => compareRounds(view as RoundsView, job),
  );
  for (const roundId of toList<RoundId>(await look.read('ZRANGE', ['rounds', job], 0, -1))) {
    for (const list of ['live', 'accepted']) {
      let from = 0;
      for (let size = GROUPS_PER_PAGE; size === GROUPS_PER_PAGE; from += size) {
        size = await checkListedGroups(look, [job, roundId, list, from, from + GROUPS_PER_PAGE - 1]);
      }
    }
  }
}

type ListPage = [job: JobId, roundId: RoundId, list: string, from: number, to: number];

/** @returns number of groups in the page */
async function checkListedGroups(look: PoolLook, page: ListPage): Promise<number> {
  const [job, roundId, list] = page;
  let size = 0;
  const check = (_: unknown, [view]: unknown[]) => {
    const groups = toList<[groupId: string, state: string | false, roundId: string | false]>(view);
    size = groups.length;
    const lost = groups.filter(([, state, ownRound]) => state !== list || ownRound !== roundId);
    return lost.map(([groupId, state, ownRound]) => ({
      check: 'round-group',
      where: `${job}/${groupId}`,
      detail: `${list} in round ${roundId}; its own fields: ${state || 'not there'}, ${ownRound || '-'}`,
    }));
  };
  await look.compare([page], () => [['round_groups', ...page]], check);
  return size;
}

function compareRounds({ openRoundId, settling, isRestoring, rounds }: RoundsView, job: JobId): Discrepancy[] {
  if (isRestoring) return [];
  const all = toList<RoundView>(rounds);
  const found = all.flatMap((round) => compareRound(round, job));
  const expected = all.reduce((sum, round) => sum + countSettling(round), 0);
  if (settling !== expected) {
    const detail = `settling ${settling}, in the rounds ${expected}`;
    const steps: Step[] = [['set_job', job, { settlingGroups: expected }]];
    found.push({ check: 'job-settling', where: job, detail, steps });
  }
  const open = all.find(({ roundId }) => roundId === openRoundId)?.state ?? 'gone';
  if (openRoundId !== false && ['gone', 'closed', 'cancelled'].includes(open)) {
    found.push({ check: 'job-open-round', where: job, detail: `${openRoundId}: ${open}` });
  }
  return found;
}

/** Number of live groups by the lists. Accepted groups of a cancelled round count, because they are given back. */
function countLive({ state, listedLive, listedAccepted }: RoundView): number {
  return listedLive + (state === 'cancelled' ? listedAccepted : 0);
}

/** Number of groups that are moving to the long-tail queue. */
function countSettling(round: RoundView): number {
  const isStaying = round.state === 'gone' || round.takesResults || round.isDropped;
  return round.listedLeaving + (isStaying ? 0 : countLive(round));
}

function compareRound(round: RoundView, job: JobId): Discrepancy[] {
  const { roundId, state } = round;
  const where = `${job}/${roundId}`;
  if (state === 'gone') {
    const detail = 'in the list of rounds, but the round is missing';
    return [{ check: 'round-without-hash', where, detail, steps: [['call', 'ZREM', ['rounds', job], roundId]] }];
  }
  const found: Discrepancy[] = [];
  const sweep: Step = ['call', 'SADD', 'sweeps', where];
  const expect = (check: string, field: string, stored: number, right: number, ...more: Step[]) => {
    if (stored === right) return;
    const steps: Step[] = [['set_round', job, roundId, { [field]: right }], ...more];
    found.push({ check, where, detail: `${state}: ${field} ${stored}, by the lists ${right}`, steps });
  };
  // With wrong counts the round waited for missing groups or ended without existing groups, so a sweep is due.
  expect('round-live', 'liveGroups', round.live, countLive(round), sweep);
  // Folding a closed round removes its list.
  if (round.takesResults || state === 'completed') {
    expect('round-accepted', 'acceptedGroups', round.accepted, round.listedAccepted, sweep);
  }
  const isSettled = !round.takesResults && countLive(round) === 0;
  expect('round-settled', 'settled', Number(round.isSettled), Number(isSettled));
  const isFolding = (state === 'closed' || state === 'cancelled') && !round.isFolded;
  const mustBeSwept = state === 'opening' || (state === 'completed' && !isSettled) || isFolding;
  if (mustBeSwept && !round.isSwept) found.push({ check: 'round-not-swept', where, detail: state, steps: [sweep] });
  expect('round-leaving', 'leavingGroups', round.leaving, round.listedLeaving);
  return found;
}
