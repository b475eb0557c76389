import { idPart, type PoolEvent, type StreamEventsRequest } from '@broomwagon/contracts';
import { parseStoredBody, type StoredMessage } from '@broomwagon/messaging';

/** The event in a message of the stream of events; undefined, with a warning, for a message that is no event. */
export function parseEvent(message: StoredMessage): PoolEvent | undefined {
  return parseStoredBody<PoolEvent>(
    message,
    ({ type, sequence }) => typeof type === 'string' && typeof sequence === 'number',
  );
}

/** Whether an event has all the fields of a filter. Events of requests have their job in the id of the request. */
export function acceptsEvent({ type, job, roundId, serverId }: StreamEventsRequest): (event: PoolEvent) => boolean {
  const ofJob = job === undefined ? '' : `${idPart(job)}/`;
  return (event) => {
    const fields = event as Partial<Record<'job' | 'roundId' | 'serverId' | 'requestId', string>>;
    return (
      (type?.includes(event.type) ?? true) &&
      (job === undefined || fields.job === job || (fields.requestId?.startsWith(ofJob) ?? false)) &&
      (roundId === undefined || fields.roundId === roundId) &&
      (serverId === undefined || fields.serverId === serverId)
    );
  };
}
