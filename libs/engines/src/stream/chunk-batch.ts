/** Longest time for which bytes wait to be read, milliseconds. */
const MAX_WAIT_MS = 100;
/** Bytes of one stream that may wait. */
const MAX_BYTES = 65_536;

/** Batches with bytes that wait: all of them are read in one turn of the event loop. */
const waiting = new Set<ChunkBatch>();
let timer: NodeJS.Timeout | undefined;

/**
 * Collects the chunks of a stream whose tokens no client waits for. Chunks that are read one after the other cost less
 * than chunks that are read each in a turn of the event loop (decision 0094).
 */
export class ChunkBatch {
  private chunks: Buffer[] = [];
  private bytes = 0;

  /**
   * @param read may throw; then the stream has failed, and nothing more is read
   * @param onFailure gets an error of bytes that had waited
   */
  constructor(
    private read: (bytes: Buffer) => void,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  /** @param isUrgent read at once, with all that waits. Throws what `read` throws. */
  add(chunk: Buffer, isUrgent: boolean): void {
    if (isUrgent && this.chunks.length === 0) return this.readBytes(chunk);
    this.chunks.push(chunk);
    this.bytes += chunk.length;
    if (isUrgent || this.bytes >= MAX_BYTES) return this.flush();
    waiting.add(this);
    timer ??= setTimeout(flushAll, MAX_WAIT_MS);
  }

  /** Reads all that waits. Throws what `read` throws. */
  flush(): void {
    waiting.delete(this);
    if (this.chunks.length === 0) return;
    const bytes = this.chunks.length === 1 ? this.chunks[0]! : Buffer.concat(this.chunks);
    this.chunks = [];
    this.bytes = 0;
    this.readBytes(bytes);
  }

  private readBytes(bytes: Buffer): void {
    try {
      this.read(bytes);
    } catch (error) {
      this.read = () => undefined;
      throw error;
    }
  }

  flushLate(): void {
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
