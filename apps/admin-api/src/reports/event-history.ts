import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  EVENTS_STREAM,
  type EventType,
  eventSubject,
  type ListEventsReply,
  type ListEventsRequest,
  type PastRound,
  type PoolEvent,
  type PoolName,
  type RoundHistoryReply,
  type RoundHistoryRequest,
  type RoundId,
  type StoredEvent,
} from '@broomwagon/contracts';
import { MessagingConnection, readStream, type StreamPosition } from '@broomwagon/messaging';
import { acceptsEvent, parseEvent } from '../events/accepts-event';

/** Default events of one page, and maximum messages that are read for one page. */
const PAGE = 512;
const MAX_READ = 4_096;
/** Messages of the stream that are requested together. */
const BATCH = 1_024;
const DAY_MS = 86_400_000;
const MAX_ROUNDS = 1_024;
/** Events from which the rounds of a job are known, without the frequent events of groups and samples. */
const ROUND_EVENTS: readonly EventType[] = ['round.opened', 'round.completed', 'round.closed', 'round.cancelled'];

/** Reads stored events. Events of wanted types are filtered by NATS, since most events are about single samples. */
@Injectable()
export class EventHistory {
  constructor(private readonly connection: MessagingConnection) {}

  /** @throws BroomwagonError UNAVAILABLE */
  async list(pool: PoolName, request: ListEventsRequest): Promise<ListEventsReply> {
    const { type, cursor, sinceMs = Date.now() - DAY_MS, limit = PAGE } = request;
    const isWanted = acceptsEvent(request);
    const from = cursor === undefined ? undefined : cursor + 1;
    const types = type === undefined || type.length === 0 ? ['>'] : type;
    const pages = await Promise.all(
      types.map((one) => this.readPage({ stream: EVENTS_STREAM, subject: eventSubject(pool, one), from, sinceMs })),
    );
    // Events after the end of a page that was cut short belong to the next page.
    const end = Math.min(...pages.map((page) => page.end));
    const read = pages.flatMap(({ messages }) => messages).filter(({ id }) => id <= end);
    read.sort((one, other) => one.id - other.id);
    const wanted = read.filter(({ event }) => event.atMs >= sinceMs && isWanted(event));
    const events = wanted.slice(0, limit);
    if (wanted.length > limit) return { events, cursor: events.at(-1)!.id };
    return { events, ...(end === Infinity ? {} : { cursor: end }) };
  }

  /** @throws BroomwagonError UNAVAILABLE */
  async listRounds(pool: PoolName, { job, limit = MAX_ROUNDS }: RoundHistoryRequest): Promise<RoundHistoryReply> {
    const isOfJob = acceptsEvent({ job });
    const rounds = new Map<RoundId, PastRound>();
    for (const type of ROUND_EVENTS) {
      for await (const { event } of this.read({ stream: EVENTS_STREAM, subject: eventSubject(pool, type) })) {
        if (isOfJob(event)) addEvent(rounds, event);
      }
    }
    const latestFirst = [...rounds.values()].toSorted((one, other) => toOrder(other) - toOrder(one));
    return { rounds: latestFirst.slice(0, limit) };
  }

  /** Reads up to the limit. `end`: place of the last message, if others follow it; otherwise Infinity. */
  private async readPage(position: StreamPosition): Promise<{ messages: StoredEvent[]; end: number }> {
    const messages: StoredEvent[] = [];
    for await (const message of this.read(position)) {
      if (messages.length === MAX_READ) return { messages, end: messages.at(-1)!.id };
      messages.push(message);
    }
    return { messages, end: Infinity };
  }

  private async *read(position: StreamPosition): AsyncGenerator<StoredEvent> {
    try {
      for await (const message of readStream(this.connection, position, BATCH)) {
        const event = parseEvent(message);
        if (event !== undefined) yield { id: message.sequence, event };
      }
    } catch (cause) {
      const reason = `The stream of events does not answer: ${(cause as Error).message}`;
      throw new BroomwagonError('UNAVAILABLE', reason, { cause });
    }
  }
}

/** Time of the opening, or of the end of a round whose opening the stream does not have any more. */
function toOrder({ openedAtMs, completedAtMs, step }: PastRound): number {
  return openedAtMs ?? completedAtMs ?? step;
}

function addEvent(rounds: Map<RoundId, PastRound>, event: PoolEvent): void {
  if (!('roundId' in event && 'step' in event)) return;
  const { roundId, step, atMs } = event;
  const before = rounds.get(roundId) ?? { roundId, step, state: 'open' };
  const more: Partial<PastRound> =
    event.type === 'round.opened'
      ? { kind: event.kind, neededGroups: event.neededGroups, openedAtMs: atMs }
      : event.type === 'round.completed'
        ? { state: 'completed', acceptedGroups: event.acceptedGroups, completedAtMs: atMs }
        : { state: event.type === 'round.closed' ? 'closed' : 'cancelled' };
  rounds.set(roundId, { ...before, ...more });
}
