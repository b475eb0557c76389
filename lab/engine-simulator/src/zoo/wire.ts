import type { ServerResponse } from 'node:http';
import { constants, createGzip, type Gzip } from 'node:zlib';
import { MINUS_INFINITY } from './chunk';
import type { Frame, WireForm } from './zoo-entry';

const MARKED_INFINITY = new RegExp(`"${MINUS_INFINITY}"`, 'g');

/** Writes frames as the bytes of one response. */
export class Wire {
  private readonly gzip: Gzip | undefined;
  private sentBytes = 0;
  private isOver = false;

  /** @param cutAt with `form.isCut`: number of bytes after which the connection breaks */
  constructor(
    private readonly response: ServerResponse,
    private readonly form: WireForm,
    private readonly cutAt: number,
  ) {
    const accepted = /\b(gzip|\*)/.test(response.req.headers['accept-encoding'] ?? '');
    const isCompressed = form.gzip === 'always' || (form.gzip === 'accepted' && accepted);
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      ...(isCompressed && { 'content-encoding': 'gzip' }),
    });
    response.flushHeaders();
    if (!isCompressed) return;
    this.gzip = createGzip();
    this.gzip.on('data', (bytes: Buffer) => this.write(bytes));
    this.gzip.on('end', () => this.finish());
  }

  readonly send = (frame: Frame): void => {
    if (this.isOver) return;
    if (frame.kind === 'end' || frame.kind === 'close') {
      this.isOver = true;
      // Written bytes are sent before the connection breaks.
      if (frame.kind === 'close') this.response.write('', () => this.response.destroy());
      else if (this.gzip) this.gzip.end();
      else this.finish();
      return;
    }
    const bytes = Buffer.from(`${toLines(frame)}\n\n`.replaceAll('\n', this.form.lineEnd ?? '\n'));
    if (!this.gzip) return this.write(bytes);
    this.gzip.write(bytes);
    this.gzip.flush(constants.Z_SYNC_FLUSH);
  };

  private finish(): void {
    if (!this.response.destroyed) this.response.end();
  }

  private write(bytes: Buffer): void {
    const left = this.form.isCut ? this.cutAt - this.sentBytes : bytes.length;
    const size = this.form.chunkBytes ?? bytes.length;
    for (let start = 0; start < Math.min(left, bytes.length); start += size) {
      if (this.response.destroyed) return;
      this.response.write(bytes.subarray(start, Math.min(start + size, left)));
    }
    this.sentBytes += Math.min(left, bytes.length);
    if (left >= bytes.length) return;
    this.isOver = true;
    this.response.write('', () => this.response.destroy());
  }
}

function toLines(frame: Exclude<Frame, { kind: 'end' | 'close' }>): string {
  if (frame.kind === 'done') return 'data: [DONE]';
  const line =
    frame.kind === 'comment' ? `: ${frame.text}` : toData(frame.kind === 'chunk' ? frame.chunk.body : frame.value);
  return frame.kind === 'chunk' || frame.event === undefined ? line : `event: ${frame.event}\n${line}`;
}

function toData(value: unknown): string {
  return `data: ${JSON.stringify(value).replaceAll(MARKED_INFINITY, '-Infinity')}`;
}
