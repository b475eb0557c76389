import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  EVENTS_STREAM,
  eventSubject,
  type PoolEvent,
  type RoundTimelineReply,
  type RoundTimelineRequest,
} from '@broomwagon/contracts';
import { MessagingConnection, readStream, TypedClient } from '@broomwagon/messaging';
import { AdminApiConfig } from '../admin-api.config';
import { acceptsEvent, parseEvent } from '../events/accepts-event';

/** Maximum events of one page, and maximum events that are read for one page. */
const MAX_EVENTS = 1_024;
const MAX_READ = 4_096;
/** Maximum difference of the clocks of Redis and NATS, milliseconds. */
export const CLOCK_MARGIN_MS = 60_000;

/** Types of events that belong to every round, because a change of weights stops all rounds of a pool. */
const OF_WEIGHTS: ReadonlySet<PoolEvent['type']> = new Set<PoolEvent['type']>([
  'weights.begun',
  'weights.committed',
  'weights.rolled-back',
  'server.paused',
  'server.resumed',
]);

/** Reads the timeline of a round from the stream of events, page by page. */
@Injectable()
export class RoundTimeline {
  constructor(
    private readonly client: TypedClient,
    private readonly connection: MessagingConnection,
    private readonly config: AdminApiConfig,
  ) {}

  /** @throws BroomwagonError JOB_NOT_FOUND, ROUND_NOT_FOUND, UNAVAILABLE */
  async read(
    pool: string,
    { job, roundId, requestId, cursor, limit = MAX_EVENTS }: RoundTimelineRequest,
  ): Promise<RoundTimelineReply> {
    const { rounds } = await this.client.call(pool, 'round.list', { job }, { timeoutMs: this.config.callTimeoutMs });
    const round = rounds.find((one) => one.roundId === roundId);
    if (round === undefined) {
      throw new BroomwagonError('ROUND_NOT_FOUND', `Job ${job} has no summary of round ${roundId}`, {
        field: 'roundId',
      });
    }
    const isOfRound = acceptsEvent({ job, roundId });
    const isWanted = (event: PoolEvent): boolean =>
      requestId === undefined
        ? isOfRound(event) || OF_WEIGHTS.has(event.type)
        : isOfRound(event) && 'requestId' in event && event.requestId === requestId;
    const events: PoolEvent[] = [];
    let [read, missingEvents] = [0, 0];
    let last: number | undefined;
    let position = cursor;
    for await (const message of this.events(pool, cursor, round.openedAtMs - CLOCK_MARGIN_MS)) {
      const event = parseEvent(message);
      read += 1;
      position = message.sequence;
      if (event === undefined) continue;
      if (last !== undefined) missingEvents += Math.max(0, event.sequence - last - 1);
      // A page starts again with the last event of the previous page, to find events that are missing in between.
      const isNew = cursor === undefined || message.sequence > cursor;
      last = last === undefined ? event.sequence : Math.max(last, event.sequence);
      const isMeanwhile = event.atMs >= round.openedAtMs;
      if (isNew && isMeanwhile && isWanted(event)) events.push(event);
      // A settled round has no more attempts.
      if (event.type === 'round.settled' && isOfRound(event)) break;
      if (events.length === limit || read >= MAX_READ) return { events, missingEvents, cursor: message.sequence };
    }
    return { events, missingEvents, position };
  }

  private async *events(pool: string, from: number | undefined, sinceMs: number) {
    const position = { stream: EVENTS_STREAM, subject: eventSubject(pool, '>'), from, sinceMs };
    try {
      yield* readStream(this.connection, position, MAX_EVENTS);
    } catch (cause) {
      throw new BroomwagonError('UNAVAILABLE', `The stream of events does not answer: ${(cause as Error).message}`, {
        cause,
      });
    }
  }
}
