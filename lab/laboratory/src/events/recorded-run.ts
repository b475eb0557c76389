import { idOfPart, type RoundKind } from '@broomwagon/contracts';
import { highest } from '../highest';

/** A round as it was recorded. */
export interface RecordedRound {
  step: number;
  kind: RoundKind;
  neededGroups: number;
  launchedGroups: number;
  openedAtMs: number;
  completedAtMs: number;
}
/** Data about one job in a stream of events. */
export interface RecordedRun {
  job: string;
  policy: string;
  rounds: RecordedRound[];
  /** Lengths of finished samples by group, groups in the order of their first round. */
  lengths: Map<string, number[]>;
  samples: number;
  /** Length of the longest response that ended at its budget; else of the longest response. */
  capTokens: number;
  /** Number of events missing by their sequence numbers: the outbox or the stream had dropped them. */
  missingEvents: number;
  /** Number of groups with a sample that never finished: they are left out. */
  partialGroups: number;
}

interface RolloutEvent {
  type: string;
  atMs: number;
  sequence?: number;
  job?: string;
  roundId?: string;
  [field: string]: unknown;
}

/**
 * Reads events, one JSON object per line, as `npm start -- --record-events FILE` and `npm run lab -- record` write
 * them. Uses `round.opened`, `round.completed`, `request.finished` and `longtail.requeued`; skips all others.
 * @param job id of the job; default: the job with the most rounds
 * @throws RangeError a line is no event, or there is no completed round or no finished group
 */
export function readEvents(text: string, name: string, job?: string): RecordedRun {
  const events = text
    .split(/\r?\n/)
    .flatMap((line, index) => (line.trim() === '' ? [] : [parseEvent(line, `${name}:${index + 1}`)]));
  const rounds = events.filter(({ type }) => type === 'round.opened');
  const chosen = job ?? mostFrequent(rounds.map((event) => event.job!));
  if (chosen === undefined) throw new RangeError(`${name}: no round was opened`);
  const own = events.filter((event) => findJob(event) === chosen);
  const run = collect(chosen, own);
  if (run.rounds.length === 0) throw new RangeError(`${name}: no round of job ${chosen} was completed`);
  if (run.lengths.size === 0) throw new RangeError(`${name}: no group of job ${chosen} was finished`);
  return { ...run, missingEvents: gaps(events) };
}

function collect(job: string, events: readonly RolloutEvent[]): RecordedRun {
  const opened = new Map<string, RolloutEvent>();
  const rounds: RecordedRound[] = [];
  const firstStep = new Map<string, number>();
  const lengths = new Map<string, (number | undefined)[]>();
  let [capTokens, longest] = [0, 0];
  const see = (groupId: string, roundId: string | undefined): void => {
    if (!firstStep.has(groupId)) firstStep.set(groupId, Number(opened.get(roundId ?? '')?.step ?? 0));
  };
  for (const event of events) {
    if (event.type === 'round.opened') opened.set(event.roundId!, event);
    if (event.type === 'longtail.requeued') see(String(event.groupId), event.roundId);
    if (event.type === 'round.completed') rounds.push(toRecordedRound(opened.get(event.roundId!), event));
    if (event.type === 'request.finished') {
      const { groupId, index } = parseRequestId(String(event.requestId));
      const tokens = Number(event.tokens);
      see(groupId, event.roundId);
      const samples = lengths.get(groupId) ?? [];
      samples[index] = tokens;
      lengths.set(groupId, samples);
      longest = Math.max(longest, tokens);
      if (event.finishReason === 'length') capTokens = Math.max(capTokens, tokens);
    }
  }
  const samples = highest([...lengths.values()].map((one) => one.length));
  const isWhole = (one: (number | undefined)[]): one is number[] => one.length === samples && !one.includes(undefined);
  const inOrder = [...lengths].sort(
    ([one], [other]) => firstStep.get(one)! - firstStep.get(other)! || byName(one, other),
  );
  const whole = inOrder.filter((entry): entry is [string, number[]] => isWhole(entry[1]));
  return {
    job,
    policy: String([...opened.values()][0]?.policy ?? 'unknown'),
    rounds: rounds.filter(({ openedAtMs }) => Number.isFinite(openedAtMs)),
    lengths: new Map(whole),
    samples,
    capTokens: capTokens || longest,
    missingEvents: 0,
    partialGroups: lengths.size - whole.length,
  };
}

function toRecordedRound(opened: RolloutEvent | undefined, completed: RolloutEvent): RecordedRound {
  const neededGroups = Number(opened?.neededGroups);
  return {
    step: Number(completed.step),
    kind: (opened?.kind ?? 'short') as RoundKind,
    neededGroups,
    launchedGroups: Number(opened?.newGroups ?? neededGroups) + Number(opened?.takeGroups ?? 0),
    openedAtMs: Number(opened?.atMs),
    completedAtMs: completed.atMs,
  };
}

function parseEvent(line: string, place: string): RolloutEvent {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    throw new RangeError(`${place}: not JSON`);
  }
  const { type, atMs } = (event ?? {}) as Partial<RolloutEvent>;
  if (typeof type !== 'string' || typeof atMs !== 'number')
    throw new RangeError(`${place}: no event: type and atMs are needed`);
  return event as RolloutEvent;
}

/** Job of an event; events of requests name it in the request id, `<job>/<group>/<sample>`. */
function findJob(event: RolloutEvent): string | undefined {
  return event.job ?? (typeof event.requestId === 'string' ? parseRequestId(event.requestId).job : undefined);
}

function parseRequestId(requestId: string): { job: string; groupId: string; index: number } {
  const [job, groupId, index] = requestId.split('/').map(idOfPart);
  return { job: job!, groupId: groupId!, index: Number(index) };
}

function gaps(events: readonly RolloutEvent[]): number {
  const numbers = events.flatMap(({ sequence }) => (sequence === undefined ? [] : [sequence])).sort((a, b) => a - b);
  if (numbers.length === 0) return 0;
  return numbers.at(-1)! - numbers[0]! + 1 - new Set(numbers).size;
}

function mostFrequent(names: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, one], [, other]) => other - one)[0]?.[0];
}

/** Compares names with numbers by value: p2 before p10. */
const { compare: byName } = new Intl.Collator('en', { numeric: true });
