import { isAscii } from 'node:buffer';
import { BroomwagonError } from '@broomwagon/contracts';
import { parseObject } from '../http/engine-http';

const LETTER_D = 0x64;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Parses server-sent events from bytes cut anywhere: inside a character, between CR and LF, inside a field name. Gives
 * the data of each event; comments and other fields are dropped. An event named `error` becomes `{"error": <its
 * data>}`, the form in which most engines send errors. Only whole lines are decoded to text, so a character split
 * between two chunks is never broken.
 *
 * ENGINE_PROTOCOL if a line, or the data of one event, is longer than maxBytes.
 */
export class EventStreamParser {
  private pending: Buffer[] = [];
  private pendingBytes = 0;
  private afterCarriageReturn = false;
  private firstLine = true;
  private data: string[] = [];
  private dataBytes = 0;
  /** The event whose lines arrive is named `error`. */
  private isError = false;

  constructor(private readonly maxBytes: number) {}

  /** Takes the next bytes, and returns the data of the events that are complete. */
  push(chunk: Uint8Array): string[] {
    const bytes = chunk instanceof Buffer ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const data = this.onlyEvent(bytes);
    if (data !== undefined) return [data];
    const end = Math.max(bytes.lastIndexOf(LINE_FEED), bytes.lastIndexOf(CARRIAGE_RETURN)) + 1;
    const events: string[] = [];
    if (end > 0) this.readLines(this.wholeLines(bytes.subarray(0, end)), events);
    if (end < bytes.length) this.keep(bytes.subarray(end));
    return events;
  }

  /** The data of bytes that are one event of one line, as almost all chunks of engines are. */
  private onlyEvent(bytes: Buffer): string | undefined {
    const end = bytes.length - 2;
    if (this.pendingBytes > 0 || this.data.length > 0 || this.isError) return undefined;
    if (bytes[end] !== LINE_FEED || bytes[end + 1] !== LINE_FEED || bytes[0] !== LETTER_D) return undefined;
    const text = decode(bytes);
    if (!text.startsWith('data: ') || text.indexOf('\n') !== text.length - 2 || text.includes('\r')) return undefined;
    this.checkLength(end);
    this.afterCarriageReturn = false;
    this.firstLine = false;
    return text.slice(6, -2);
  }

  /** Text of the kept bytes and these bytes, which end with a line. */
  private wholeLines(bytes: Buffer): string {
    const kept = this.pendingBytes > 0;
    let text = decode(kept ? Buffer.concat([...this.pending, bytes]) : bytes);
    if (this.afterCarriageReturn && !kept && text.startsWith('\n')) text = text.slice(1);
    this.afterCarriageReturn = text.endsWith('\r');
    if (this.firstLine && text.startsWith('\uFEFF')) text = text.slice(1);
    this.firstLine &&= text === '';
    this.pending = [];
    this.pendingBytes = 0;
    return text;
  }

  private keep(rest: Buffer): void {
    this.pendingBytes += rest.length;
    this.checkLength(this.pendingBytes);
    this.pending.push(Buffer.from(rest));
  }

  private readLines(text: string, events: string[]): void {
    const lines = text.includes('\r') ? text.split(/\r\n|\r|\n/) : text.split('\n');
    lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (this.data.length > 0 || this.isError) events.push(this.eventData());
        this.data = [];
        this.dataBytes = 0;
        this.isError = false;
        continue;
      }
      const bytes = Buffer.byteLength(line);
      this.checkLength(bytes);
      if (line === 'event: error' || line === 'event:error') this.isError = true;
      if (line !== 'data' && !line.startsWith('data:')) continue;
      this.dataBytes += bytes;
      this.checkLength(this.dataBytes);
      this.data.push(line.slice(line[5] === ' ' ? 6 : 5));
    }
  }

  private eventData(): string {
    const data = this.data.length === 1 ? this.data[0]! : this.data.join('\n');
    if (!this.isError) return data;
    const error = parseObject(data);
    return JSON.stringify({ error: error?.error ?? error ?? data });
  }

  private checkLength(bytes: number): void {
    if (bytes > this.maxBytes) {
      throw new BroomwagonError('ENGINE_PROTOCOL', `The engine sent an event of more than ${this.maxBytes} bytes`);
    }
  }
}

/** Decodes UTF-8. Text without other characters than those of ASCII, as numbers are, is copied. */
function decode(bytes: Buffer): string {
  return bytes.toString(isAscii(bytes) ? 'latin1' : 'utf8');
}
