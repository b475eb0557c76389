import { open, type FileHandle } from 'node:fs/promises';
import type { ResultLine, ResultSink } from './result-line';

const BATCH_BYTES = 1_000_000;

/** Results as JSONL, a round at a time. A round written again replaces what it wrote, if it is the last one. */
export class ResultsFile implements ResultSink {
  private lastRound = { roundId: '', position: 0 };
  private position = 0;

  private constructor(private readonly file: FileHandle) {}

  /** Creates or empties the file. */
  static async create(path: string): Promise<ResultsFile> {
    return new ResultsFile(await open(path, 'w'));
  }

  async writeRound(roundId: string, lines: readonly ResultLine[]): Promise<void> {
    if (roundId === this.lastRound.roundId) {
      this.position = this.lastRound.position;
      await this.file.truncate(this.position);
    }
    this.lastRound = { roundId, position: this.position };
    let batch = '';
    for (const [index, line] of lines.entries()) {
      batch += `${JSON.stringify(line)}\n`;
      if (batch.length < BATCH_BYTES && index < lines.length - 1) continue;
      this.position += (await this.file.write(batch, this.position)).bytesWritten;
      batch = '';
    }
  }

  async close(): Promise<void> {
    await this.file.close();
  }
}
