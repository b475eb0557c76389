import { OPERATION_PATTERNS } from '@broomwagon/contracts';
import { connect, type Msg } from 'nats';

const FOREIGN_STREAM = 'FOREIGN';

/** Code of an operation that no service takes. NATS sends no status 503 for a subject that a stream stores. */
export const UNSERVED_CODE = process.env['TEST_FOREIGN_STREAM'] === undefined ? 'UNAVAILABLE' : 'TIMEOUT';

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

/** Whether a message is an acknowledgement of the stream of {@link makeForeignStream}, and not the reply of a service. */
export function isOfForeignStream(message: Msg): boolean {
  return message.string().includes(`"stream":"${FOREIGN_STREAM}"`);
}
