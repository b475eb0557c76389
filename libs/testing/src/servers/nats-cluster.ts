import { connect } from 'nats';
import { freePort } from '../free-port';
import { waitUntil } from '../wait-until';
import { startNats } from './nats-server';
import type { ServerHandle } from './server-handle';

const READY_TIMEOUT_MS = 60_000;

/** Three NATS servers with JetStream as one cluster, on free ports of 127.0.0.1. */
export class NatsCluster {
  private constructor(readonly servers: readonly ServerHandle[]) {}

  /**
   * @throws BroomwagonError UNAVAILABLE when there is no NATS to start here, TIMEOUT when they do not come together
   */
  static async start(): Promise<NatsCluster> {
    const ports = await Promise.all([freePort(), freePort(), freePort()]);
    const routes = ports.map((port) => `"nats://127.0.0.1:${port}"`).join(', ');
    const servers: ServerHandle[] = [];
    const cluster = new NatsCluster(servers);
    try {
      for (const port of ports) {
        const configuration = `cluster { name: cluster, listen: "127.0.0.1:${port}", routes: [${routes}] }`;
        servers.push(await startNats({ configuration }));
      }
      await cluster.untilWhole();
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** Addresses of all servers, in the form of NATS_URL. */
  get url(): string {
    return this.servers.map(({ url }) => url).join(',');
  }

  /** Kills a server for so long, and returns when the cluster is whole again. */
  async killFor(server: ServerHandle, durationMs: number): Promise<void> {
    await server.kill();
    await new Promise((resolve) => setTimeout(resolve, durationMs));
    await server.restart();
    await this.untilWhole();
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  /** Each server answers, and JetStream has a leader. */
  private untilWhole(): Promise<void> {
    return waitUntil(
      async () => {
        const answers = this.servers.map(({ url }) => hasJetStream(url).catch(() => false));
        return (await Promise.all(answers)).every(Boolean);
      },
      { what: 'the servers of the NATS cluster to agree', timeoutMs: READY_TIMEOUT_MS },
    );
  }
}

async function hasJetStream(url: string): Promise<boolean> {
  const connection = await connect({ servers: url, reconnect: false, timeout: 2_000 });
  try {
    await connection.jetstreamManager({ timeout: 2_000 });
    return true;
  } finally {
    await connection.close();
  }
}
