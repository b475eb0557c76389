import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An OpenAI-compatible engine whose streams the test plays. */
export class StubEngine {
  readonly bodies: Record<string, unknown>[] = [];
  /** Streams whose client disconnected before their end. */
  disconnected = 0;
  private readonly server: Server;

  private constructor(play: (stream: EngineStream, index: number) => void) {
    this.server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        this.bodies.push(JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>);
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.on('close', () => {
          if (!response.writableEnded) this.disconnected++;
        });
        play(new EngineStream(response), this.bodies.length - 1);
      });
    });
  }

  static async start(play: (stream: EngineStream, index: number) => void): Promise<StubEngine> {
    const engine = new StubEngine(play);
    await new Promise<void>((resolve) => engine.server.listen(0, '127.0.0.1', resolve));
    return engine;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

/** One answer being streamed. */
export class EngineStream {
  constructor(private readonly response: ServerResponse) {}

  token(text: string): void {
    this.event({ choices: [{ index: 0, text, finish_reason: null }] });
  }

  finish(reason: 'stop' | 'length'): void {
    this.event({ choices: [{ index: 0, text: '', finish_reason: reason }] });
    this.response.end('data: [DONE]\n\n');
  }

  /** Breaks the connection, like an engine that crashes. */
  break(): void {
    this.response.destroy();
  }

  private event(body: object): void {
    this.response.write(`data: ${JSON.stringify({ object: 'text_completion', ...body })}\n\n`);
  }
}
