/** Longest time for which bytes wait to be read, milliseconds. */
const MAX_WAIT_MS = 100;
/** Bytes of one stream that may wait. */
const MAX_BYTES = 65_536;

/**
 * Urgency of a chunk:
 *
 * - `urgent`: the chunk is read at once.
 * - `usual`: the chunk may wait.
 * - `long`: the connection waits too, since a late end is a small part of the response.
 */
export type Urgency = 'urgent' | 'usual' | 'long';

/** Batches with bytes that wait: all of them are read in one turn of the event loop. */
const waiting = new Set<ChunkBatch>();
let timer: NodeJS.Timeout | undefined;

/**
 * Collects the chunks of a stream whose tokens no client waits for. Several chunks in one turn of the event loop cost
 * less than a turn for each chunk, and an unread connection collects several chunks (decision 0127).
 */
export class ChunkBatch {
  private chunks: Buffer[] = [];
  private bytes = 0;
  private isResuming = false;
  /** Error that `read` has thrown. */
  private failure: { error: unknown } | undefined;

  /**
   * @param read may throw; then the stream has failed, and nothing more is read
   * @param onFailure gets an error of bytes that had waited
   * @param resume called after {@link add} has returned false; gives chunks that have arrived to {@link add} at once
   */
  constructor(
    private readonly read: (bytes: Buffer) => void,
    private readonly onFailure: (error: unknown) => void,
    private readonly resume: () => void,
  ) {}

  /** @returns false if no chunk is needed before `resume`. Throws the errors of `read`. */
  add(chunk: Buffer, urgency: Urgency): boolean {
    this.chunks.push(chunk);
    this.bytes += chunk.length;
    if (this.isResuming) return true;
    if (urgency === 'urgent' || this.bytes >= MAX_BYTES) {
      this.flush();
      return true;
    }
    waiting.add(this);
    timer ??= setTimeout(flushAll, MAX_WAIT_MS);
    return urgency === 'usual';
  }

  /**
   * Reads all waiting chunks. Throws the error of `read`, also an earlier error: a stream may have ended before
   * `onFailure`.
   */
  flush(): void {
    waiting.delete(this);
    const { chunks } = this;
    this.chunks = [];
    this.bytes = 0;
    if (this.failure !== undefined) throw this.failure.error;
    if (chunks.length === 0) return;
    try {
      this.read(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    } catch (error) {
      this.failure = { error };
      throw error;
    }
  }

  flushLate(): void {
    this.isResuming = true;
    this.resume();
    this.isResuming = false;
    try {
      this.flush();
    } catch (error) {
      this.onFailure(error);
    }
  }
}

function flushAll(): void {
  timer = undefined;
  for (const batch of waiting) batch.flushLate();
}
