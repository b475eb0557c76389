import { OPERATION_PATTERNS } from '@broomwagon/contracts';
import { connect } from 'nats';

/** Name of the stream of {@link makeForeignStream}. */
export const FOREIGN_STREAM = 'FOREIGN';

/**
 * Makes a JetStream stream over the subjects of all operations, like a user who wants to record the calls. Every
 * request then gets an acknowledgement of JetStream before the reply of the service.
 */
export async function makeForeignStream(natsUrl: string): Promise<void> {
  const nats = await connect({ servers: natsUrl });
  try {
    const manager = await nats.jetstreamManager();
    await manager.streams.add({ name: FOREIGN_STREAM, subjects: [...OPERATION_PATTERNS], max_bytes: 64 * 1_048_576 });
  } finally {
    await nats.close();
  }
}
