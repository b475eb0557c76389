import { open, type FileHandle } from 'node:fs/promises';
import type { PoolName } from '@broomwagon/contracts';
import type { MessagingConnection } from '@broomwagon/messaging';
import { recordEvents } from '../../../laboratory/src/events/record-events';

/** Time to wait for the last events, which the relay may publish after the last round is closed. */
const LAST_EVENTS_MS = 1_500;

/** A file of all events of a pool, one JSON object per line, for `npm run lab -- whatif`. */
export class EventsFile {
  private lines: string[] = [];
  private writing: Promise<void> = Promise.resolve();
  private readonly end: () => Promise<void>;

  private constructor(
    private readonly file: FileHandle,
    connection: MessagingConnection,
    pool: PoolName,
  ) {
    this.end = recordEvents(connection, pool, (line) => this.add(line));
  }

  static async create(path: string, connection: MessagingConnection, pool: PoolName): Promise<EventsFile> {
    return new EventsFile(await open(path, 'w'), connection, pool);
  }

  /** Ends the recording after all published events are in the file. @throws the error of a failed write */
  async stop(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, LAST_EVENTS_MS));
    await this.end();
    await this.writing;
    await this.file.close();
  }

  /** Adds an event; events that arrive during a write are written together. */
  private add(line: string): void {
    this.lines.push(line);
    if (this.lines.length > 1) return;
    this.writing = this.writing.then(async () => {
      const text = `${this.lines.join('\n')}\n`;
      this.lines = [];
      await this.file.write(text);
    });
    this.writing.catch(() => undefined);
  }
}
