import {
  idOfPart,
  type PoolEvent,
  type RoundCompletedEvent,
  type RoundKind,
  type RoundOpenedEvent,
} from '@broomwagon/contracts';
import { SampleCollector } from '@broomwagon/policies';

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
  /** Lengths of finished samples by group, groups in the order of their submission. */
  lengths: Map<string, number[]>;
  samples: number;
  /** Length of the longest response that ended at its budget; else of the longest response. */
  capTokens: number;
  /** Number of events missing by their sequence numbers: the outbox or the stream had dropped them. */
  missingEvents: number;
  /** Number of groups with a sample that never finished: they are left out. */
  partialGroups: number;
}

/**
 * Reads events, one JSON object per line, as `npm start -- --record-events FILE` and `npm run lab -- record` write
 * them. Uses the opening and completion of rounds, and the events of {@link SampleCollector}; skips all others.
 * @param job id of the job; default: the job with the most rounds
 * @throws RangeError a line is no event, or there is no completed round or no finished group
 */
export function readEvents(text: string, name: string, job?: string): RecordedRun {
  const events = text
    .split(/\r?\n/)
    .flatMap((line, index) => (line.trim() === '' ? [] : [parseEvent(line, `${name}:${index + 1}`)]));
  const chosen = job ?? mostFrequent(events.flatMap((event) => (event.type === 'round.opened' ? [event.job] : [])));
  if (chosen === undefined) throw new RangeError(`${name}: no round was opened`);
  const own = events.filter((event) => findJob(event) === chosen);
  const run = collect(chosen, own);
  if (run.rounds.length === 0) throw new RangeError(`${name}: no round of job ${chosen} was completed`);
  if (run.lengths.size === 0) throw new RangeError(`${name}: no group of job ${chosen} was finished`);
  return { ...run, missingEvents: gaps(events) };
}

function collect(job: string, events: readonly PoolEvent[]): RecordedRun {
  const opened = new Map<string, RoundOpenedEvent>();
  const rounds: RecordedRound[] = [];
  const collector = new SampleCollector();
  let [capTokens, longest] = [0, 0];
  for (const event of events) {
    collector.add(event);
    if (event.type === 'round.opened') opened.set(event.roundId, event);
    if (event.type === 'round.completed') rounds.push(toRecordedRound(opened.get(event.roundId), event));
    if (event.type === 'request.finished') {
      longest = Math.max(longest, event.tokens);
      if (event.finishReason === 'length') capTokens = Math.max(capTokens, event.tokens);
    }
  }
  const { groups, samples, partialGroups } = collector.collected();
  return {
    job,
    policy: [...opened.values()][0]?.policy ?? 'unknown',
    rounds: rounds.filter(({ openedAtMs }) => Number.isFinite(openedAtMs)),
    lengths: groups,
    samples,
    capTokens: capTokens || longest,
    missingEvents: 0,
    partialGroups,
  };
}

function toRecordedRound(opened: RoundOpenedEvent | undefined, completed: RoundCompletedEvent): RecordedRound {
  const neededGroups = Number(opened?.neededGroups);
  return {
    step: completed.step,
    kind: opened?.kind ?? 'short',
    neededGroups,
    launchedGroups: (opened?.newGroups ?? neededGroups) + (opened?.takeGroups ?? 0),
    openedAtMs: Number(opened?.atMs),
    completedAtMs: completed.atMs,
  };
}

function parseEvent(line: string, place: string): PoolEvent {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    throw new RangeError(`${place}: not JSON`);
  }
  const { type, atMs } = (event ?? {}) as Partial<PoolEvent>;
  if (typeof type !== 'string' || typeof atMs !== 'number')
    throw new RangeError(`${place}: no event: type and atMs are needed`);
  return event as PoolEvent;
}

/** Job of an event; events of requests name it in the request id, `<job>/<group>/<sample>`. */
function findJob(event: PoolEvent): string | undefined {
  if ('job' in event) return event.job;
  return 'requestId' in event ? idOfPart(event.requestId.split('/')[0]!) : undefined;
}

function gaps(events: readonly { sequence?: number }[]): number {
  const numbers = events.flatMap(({ sequence }) => (sequence === undefined ? [] : [sequence])).sort((a, b) => a - b);
  if (numbers.length === 0) return 0;
  return numbers.at(-1)! - numbers[0]! + 1 - new Set(numbers).size;
}

function mostFrequent(names: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, one], [, other]) => other - one)[0]?.[0];
}
