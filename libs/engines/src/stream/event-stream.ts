import { BroomwagonError } from '@broomwagon/contracts';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Server-sent events from bytes cut anywhere: inside a character, between CR and LF, inside a field name. Gives the
 * data of each event; comments and other fields are dropped. Bytes become text only once a line is whole, so a
 * character split between two chunks is never broken.
 *
 * ENGINE_PROTOCOL when a line, or the data of one event, is longer than maxBytes.
 */
export class EventStreamParser {
  private pending: Buffer[] = [];
  private pendingBytes = 0;
  private afterCarriageReturn = false;
  private firstLine = true;
  private data: string[] = [];
  private dataBytes = 0;

  constructor(private readonly maxBytes: number) {}

  /** Takes the next bytes; returns the data of the events they completed. */
  push(chunk: Uint8Array): string[] {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const events: string[] = [];
    let start = 0;
    for (let index = nextBreak(bytes, 0); index !== -1; index = nextBreak(bytes, index + 1)) {
      const isSecondHalf = this.afterCarriageReturn && index === start && bytes[index] === LINE_FEED;
      this.afterCarriageReturn = bytes[index] === CARRIAGE_RETURN;
      if (!isSecondHalf) this.endLine(bytes.subarray(start, index), events);
      start = index + 1;
    }
    if (start < bytes.length) {
      this.afterCarriageReturn = false;
      this.keep(bytes.subarray(start));
    }
    return events;
  }

  private keep(rest: Buffer): void {
    this.pendingBytes += rest.length;
    this.checkLength(this.pendingBytes);
    this.pending.push(Buffer.from(rest));
  }

  private endLine(rest: Buffer, events: string[]): void {
    this.checkLength(this.pendingBytes + rest.length);
    const whole = this.pending.length === 0 ? rest : Buffer.concat([...this.pending, rest]);
    this.pending = [];
    this.pendingBytes = 0;
    let line = whole.toString('utf8');
    if (this.firstLine) {
      this.firstLine = false;
      if (line.startsWith('\uFEFF')) line = line.slice(1);
    }
    if (line === '') {
      if (this.data.length > 0) events.push(this.data.join('\n'));
      this.data = [];
      this.dataBytes = 0;
    } else if (line === 'data' || line.startsWith('data:')) {
      this.dataBytes += whole.length;
      this.checkLength(this.dataBytes);
      this.data.push(line.slice(line[5] === ' ' ? 6 : 5));
    }
  }

  private checkLength(bytes: number): void {
    if (bytes > this.maxBytes) {
      throw new BroomwagonError('ENGINE_PROTOCOL', `The engine sent an event of more than ${this.maxBytes} bytes`);
    }
  }
}

function nextBreak(bytes: Buffer, from: number): number {
  const feed = bytes.indexOf(LINE_FEED, from);
  // A CR can only come first within the part before the LF: search no further.
  const carriage = bytes.subarray(from, feed === -1 ? bytes.length : feed).indexOf(CARRIAGE_RETURN);
  return carriage === -1 ? feed : from + carriage;
}
