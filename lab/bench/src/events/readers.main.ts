import { connect, type Socket } from 'node:net';
import { answerParent } from '../child';

/** Jobs of the program. */
export type ReadersJob =
  /** Opens so many streams of events of a pool; streams without `reads` stop reading after the head of the reply. */
  { kind: 'open'; port: number; token: string; pool: string; count: number; reads: boolean } | { kind: 'count' };

export interface ReadersResult {
  /** Number of open streams. */
  open: number;
  /** Events that all streams together have received. */
  events: number;
}

/** Number of streams that are opened at the same time. */
const AT_ONCE = 64;
const EVENT = Buffer.from('\nevent: ');
let open = 0;
let events = 0;

function openStream({ port, token, pool, reads }: Extract<ReadersJob, { kind: 'open' }>): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(port, '127.0.0.1');
    socket.on('error', reject).on('close', () => (open -= 1));
    socket.write(`GET /api/v1/pools/${pool}/events HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    socket.once('data', (head) => {
      if (!head.toString('latin1').startsWith('HTTP/1.1 200')) return reject(new Error(head.toString('utf8')));
      open += 1;
      if (!reads) return resolve(void socket.pause());
      socket.on('data', (chunk: Buffer) => {
        // An event whose name is split between two chunks is not counted.
        for (let at = chunk.indexOf(EVENT); at >= 0; at = chunk.indexOf(EVENT, at + 1)) events += 1;
      });
      resolve();
    });
  });
}

answerParent<ReadersJob, ReadersResult>(async (job) => {
  if (job.kind === 'open') {
    for (let first = 0; first < job.count; first += AT_ONCE) {
      const page = Math.min(AT_ONCE, job.count - first);
      await Promise.all(Array.from({ length: page }, () => openStream(job)));
    }
  }
  return { open, events };
});
