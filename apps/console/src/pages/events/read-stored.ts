import { type AdminClient, iteratePages, readData, type StreamedEvent } from '@broomwagon/admin-client';
import type { PoolEventType } from '../../live/event-types';

/** Maximum events that are kept: the latest ones. */
export const MAX_STORED = 5_000;

/** Reads the stored events of these types since a time, the latest first. */
export async function readStored(
  client: AdminClient,
  pool: string,
  { type, sinceMs }: { type: readonly PoolEventType[]; sinceMs: number },
  signal: AbortSignal,
): Promise<StreamedEvent[]> {
  const found: StreamedEvent[] = [];
  if (type.length === 0) return found;
  const read = (cursor?: number) => {
    const query = { type: [...type], sinceMs: Math.round(sinceMs), cursor };
    return readData(client.GET('/api/v1/pools/{pool}/events/stored', { params: { path: { pool }, query }, signal }));
  };
  for await (const { events } of iteratePages(read)) {
    found.push(...events.map(({ id, event }) => ({ id: String(id), event })));
    if (found.length > MAX_STORED) found.splice(0, found.length - MAX_STORED);
  }
  return found.toReversed();
}
