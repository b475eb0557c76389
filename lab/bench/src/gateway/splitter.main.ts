import { connect, createServer, type AddressInfo } from 'node:net';
import { answerParent } from '../child';

/** Passes TCP connections to some ports in turn without parsing them, as a balancer in front of replicas does. */
answerParent<{ ports: number[] }, { port: number }>(async ({ ports }) => {
  let count = 0;
  const server = createServer({ noDelay: true }, (client) => {
    const replica = connect({ port: ports[count++ % ports.length]!, host: '127.0.0.1', noDelay: true });
    client.pipe(replica).pipe(client);
    client.on('error', () => replica.destroy()).on('close', () => replica.destroy());
    replica.on('error', () => client.destroy()).on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 8_192, resolve));
  return { port: (server.address() as AddressInfo).port };
});
