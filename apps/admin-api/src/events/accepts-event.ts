import { idPart, type PoolEvent, type StreamEventsRequest } from '@broomwagon/contracts';
import { parseStoredBody, type StoredMessage } from '@broomwagon/messaging';

/** The event in a message of the event stream. For any other message, logs a warning and returns undefined. */
export function parseEvent(message: StoredMessage): PoolEvent | undefined {
  return parseStoredBody<PoolEvent>(
    message,
    ({ type, sequence }) => typeof type === 'string' && typeof sequence === 'number',
  );
}

/** Makes the check whether an event has all fields of a filter. The id of a request contains its job. */
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
