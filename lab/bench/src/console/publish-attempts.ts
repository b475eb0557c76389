import { eventSubject } from '@broomwagon/contracts';
import type { MessagingConnection } from '@broomwagon/messaging';

const SERVERS = 64;
const PAGE = 1_000;

/** Writes the events of `attempts` finished attempts of a round into the stream, to fill a timeline. */
export async function publishAttempts(
  connection: MessagingConnection,
  { pool, job, roundId, openedAtMs }: { pool: string; job: string; roundId: string; openedAtMs: number },
  attempts: number,
): Promise<void> {
  const stream = connection.nats.jetstream({ timeout: 20_000 });
  const publish = (index: number) => {
    const claimedAtMs = openedAtMs + (index % 100) * 10;
    const endedMs = 900 + (index % 7) * 100;
    const run = { serverId: `s${index % SERVERS}`, weightVersion: 0, leasedMs: 2, firstTokenMs: 40, endedMs };
    const request = { requestId: `${job}/g${index}/0`, roundId, attempt: '1-a', queuedAtMs: openedAtMs, claimedAtMs };
    // The stream numbers its messages; the sequence of an event only shows gaps.
    const event = { type: 'request.finished', pool, atMs: claimedAtMs + endedMs + 20, sequence: 1 };
    const body = { ...event, ...request, attemptTokens: 100, tokens: 100, finishReason: 'stop', run };
    return stream.publish(eventSubject(pool, 'request.finished'), JSON.stringify(body));
  };
  for (let first = 0; first < attempts; first += PAGE) {
    await Promise.all(Array.from({ length: Math.min(PAGE, attempts - first) }, (_, index) => publish(first + index)));
  }
}
