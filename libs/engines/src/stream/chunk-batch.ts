/** Longest time for which bytes wait to be read, milliseconds. */
const MAX_WAIT_MS = 100;
/** Bytes of one stream that may wait. */
const MAX_BYTES = 65_536;

/**
 * `urgent`: it is read at once. `usual`: only the end of the response is waited for. `long`: the same, and a late end
 * is a small part of the response.
 */
export type Urgency = 'urgent' | 'usual' | 'long';

/** Batches with bytes that wait: all of them are read in one turn of the event loop. */
const waiting = new Set<ChunkBatch>();
let timer: NodeJS.Timeout | undefined;

/**
 * Collects the chunks of a stream whose tokens no client waits for. Chunks that are read one after the other cost less
 * than chunks that are read each in a turn of the event loop (decision 0127), and a connection that is not read
 * meanwhile brings several chunks at once (decision 0127).
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
   * @param resume after {@link add} has returned false: gives more chunks to it at once, if there are any
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
   * Reads all that waits. Throws the error of `read`, also an earlier one: a stream may have ended before `onFailure`.
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
