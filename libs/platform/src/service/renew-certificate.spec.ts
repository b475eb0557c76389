import { createServer } from 'node:https';
import { connect } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { TEST_CERTIFICATE, TEST_KEY } from '@broomwagon/testing';
import { expect, it, vi } from 'vitest';
import { renewCertificate } from './renew-certificate';

it('uses changed files for new connections, and keeps the previous certificate when the files are broken', async () => {
  let certificate = TEST_CERTIFICATE;
  const server = createServer({ cert: certificate, key: TEST_KEY });
  const set = vi.spyOn(server, 'setSecureContext');
  let reads = 0;
  renewCertificate(
    server,
    () => {
      reads += 1;
      return { cert: certificate, key: TEST_KEY };
    },
    5,
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const shakesHands = () =>
    new Promise<boolean>((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', ca: TEST_CERTIFICATE, servername: 'localhost' }, () => {
        socket.end();
        resolve(true);
      });
      socket.on('error', reject);
    });

  await expect.poll(() => reads).toBeGreaterThan(3);
  expect(set).not.toHaveBeenCalled();

  certificate = `renewed\n${TEST_CERTIFICATE}`;
  await expect.poll(() => set.mock.calls.length).toBe(1);
  expect(await shakesHands()).toBe(true);

  certificate = 'half of a file';
  await expect.poll(() => set.mock.results.filter(({ type }) => type === 'throw').length).toBeGreaterThan(0);
  expect(await shakesHands()).toBe(true);
  server.close();
});
