import { createServer, type AddressInfo } from 'node:net';

/**
 * A TCP port of 127.0.0.1 without a listener at this moment. It is not reserved: another process may take it before
 * you do, so a caller that starts a server on it must be ready to try another one.
 */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}
