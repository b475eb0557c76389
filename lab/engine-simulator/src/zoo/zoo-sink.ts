import type { FinishReason, TokenSink } from '../engine/simulated-engine.types';
import type { AnswerFormat } from '../http/answer-format';
import { Chunk } from './chunk';
import type { SendFrame, Stage, StageContext } from './zoo-entry';

/** Writes a response token by token through the stages of behaviours. The last token and the reason share a chunk. */
export class ZooSink implements TokenSink {
  private readonly send: SendFrame;
  /** Position of the last token while it is not sent yet. */
  private held: number | undefined;

  constructor(
    private readonly format: AnswerFormat,
    private readonly context: StageContext,
    stages: readonly Stage[],
    private made: number,
    write: SendFrame,
  ) {
    this.send = stages.reduceRight((next, stage) => stage(context, next), write);
  }

  tokens(from: number, to: number): void {
    for (let position = from; position < to; position++) {
      this.flush();
      this.held = position;
    }
    this.made = to;
    queueMicrotask(() => this.flush());
  }

  end(reason: FinishReason): void {
    const from = this.held ?? this.made;
    this.held = undefined;
    this.sendChunk(from, this.made, reason);
    const usage = this.format.usageChunk(this.made);
    if (usage !== undefined) this.send({ kind: 'value', value: JSON.parse(usage) });
    this.send({ kind: 'done' });
    this.send({ kind: 'end' });
  }

  private flush(): void {
    if (this.held === undefined) return;
    const position = this.held;
    this.held = undefined;
    this.sendChunk(position, position + 1, undefined);
  }

  private sendChunk(from: number, to: number, reason: FinishReason | undefined): void {
    const json = this.format.chunk({ from, to }, reason);
    this.send({ kind: 'chunk', chunk: Chunk.parse(json, this.context.call, to - from) });
  }
}
