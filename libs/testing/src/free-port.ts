import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { BroomwagonError } from '@broomwagon/contracts';

/**
 * Below the ports that Linux and macOS choose for outgoing connections, and for listeners that ask for any port: such a
 * port could be taken while a server that a test has killed is to start on it again.
 */
const [FIRST_PORT, LAST_PORT] = [15_000, 29_999];
const MAX_TRIES = 100;

/**
 * A TCP port of 127.0.0.1 without a listener at this moment, which the system gives to nobody by itself. It is not
 * reserved: another process may take it before you do, so a caller that starts a server on it must be ready to try
 * another one.
 * @throws BroomwagonError UNAVAILABLE
 */
export async function freePort(choose = () => randomInt(FIRST_PORT, LAST_PORT + 1)): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const port = choose();
    if (await isFree(port)) return port;
  }
  throw new BroomwagonError('UNAVAILABLE', `No free port of ${FIRST_PORT} to ${LAST_PORT} found: end some servers`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false);
      else reject(error);
    });
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
