import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

/** An API server of Kubernetes with one EndpointSlice of one ready pod, and an open watch for each client. */
export class FakeApiServer {
  private constructor(
    private readonly server: Server,
    readonly serviceAccountDir: string,
  ) {}

  /** @param port port of the pod on 127.0.0.1 @param folder where the files of the service account are written */
  static async start(port: number, folder: string): Promise<FakeApiServer> {
    const dir = join(folder, 'service-account');
    mkdirSync(dir, { recursive: true });
    for (const [name, text] of Object.entries({ token: 'token', namespace: 'test' })) {
      writeFileSync(join(dir, name), text);
    }
    const endpoints = [{ addresses: ['127.0.0.1'], conditions: { ready: true }, targetRef: { uid: 'pod-1' } }];
    const slice = { metadata: { name: 'slice' }, endpoints, ports: [{ port }] };
    const list = { kind: 'EndpointSliceList', metadata: { resourceVersion: '1' }, items: [slice] };
    const server = createServer((request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      if (new URL(request.url!, 'http://host').searchParams.has('watch')) response.flushHeaders();
      else response.end(JSON.stringify(list));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new FakeApiServer(server, dir);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
