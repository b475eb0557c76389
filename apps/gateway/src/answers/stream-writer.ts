import type { ServerResponse } from 'node:http';
import type { BroomwagonError } from '@broomwagon/contracts';
import { withOpaqueTexts } from '@broomwagon/engines';
import type { Generation } from '../core/generation';
import { BEGIN, type Format, type Position } from './format';
import { addRecorded, announceRecorded, setHeaders } from './generation-headers';
import { endWith, errorBody, writeParts } from '../http/send-json';
import { keepFromSilence } from '../http/silence-keeper';
import { writeChunk } from '../http/write-chunk';

/** A comment of an event stream: readers of events ignore it. */
export const COMMENT = ':\n\n';
export const EVENT_STREAM = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };

interface Choice {
  generation: Generation;
  index: number;
  position: Position;
  /** The last chunk of the choice is written. */
  isEnded: boolean;
  /** Function of the format for running choices. */
  running?: (from: Position) => string;
}

/**
 * Writes the tokens of one turn of the event loop as one chunk. The next chunk waits until the client has read the
 * previous chunk: a slow client gets fewer and longer chunks.
 */
export class StreamWriter {
  private readonly choices: Choice[];
  private silence: NodeJS.Timeout | undefined;
  private hasWritten = false;

  /** @param shown converts an error to the form that the caller may see */
  constructor(
    private readonly generations: Generation[],
    private readonly response: ServerResponse,
    private readonly format: Format,
    private readonly shown: (error: BroomwagonError) => BroomwagonError,
  ) {
    this.choices = generations.map((generation, index) => ({
      generation,
      index,
      position: BEGIN,
      isEnded: false,
      running: format.running?.(generation, index),
    }));
  }

  /**
   * Writes the stream. Resolves when the response is closed.
   * @param silenceMs silence after which a comment is written; 0: never
   * @throws BroomwagonError the error that ended a generation, if nothing was sent
   */
  run(silenceMs: number): Promise<void> {
    const { response } = this;
    this.silence = keepFromSilence(response, silenceMs, () => this.begin(this.generations[0]!), COMMENT);
    return new Promise((resolve, reject) => {
      const write = (): void => {
        for (const choice of this.choices) {
          const { generation } = choice;
          if (response.destroyed || response.writableNeedDrain || response.writableEnded) return;
          if (!response.headersSent && generation.end?.reason === 'error' && generation.tokens.count === 0) {
            off();
            setHeaders(generation, response);
            return reject(generation.end.error);
          }
          this.writeChoice(choice);
        }
      };
      let isWaiting = false;
      const writeWaiting = (): void => {
        isWaiting = false;
        try {
          write();
        } catch (error) {
          off();
          reject(error as Error);
        }
      };
      const onChange = (): void => {
        if (isWaiting) return;
        isWaiting = true;
        process.nextTick(writeWaiting);
      };
      const listeners = this.choices.map(({ generation }) => generation.onChange(onChange));
      const off = (): void => {
        clearInterval(this.silence);
        for (const stopListening of listeners) stopListening();
        response.off('drain', write);
      };
      response.on('drain', write);
      response.once('close', () => {
        off();
        resolve();
      });
      write();
    });
  }

  private begin(generation: Generation): void {
    const { response } = this;
    setHeaders(generation, response);
    announceRecorded(this.generations, response);
    response.writeHead(200, EVENT_STREAM);
  }

  private writeChoice(choice: Choice): void {
    const { response, format } = this;
    const { generation, index, position } = choice;
    const { tokens, end } = generation;
    const message = tokens.message?.position;
    const isNew =
      message === undefined
        ? tokens.count > position.tokens || tokens.textLength > position.characters
        : message.changes > (position.message?.changes ?? 0);
    if (choice.isEnded || (!isNew && end === undefined)) return;
    if (!response.headersSent) this.begin(generation);
    this.silence?.refresh();
    if (tokens.count > 0) generation.markSent();
    if (end?.reason === 'error') {
      addRecorded(this.generations, response);
      const error = this.shown(end.error);
      response.end(this.written(format.failure?.(error) ?? { error: errorBody(error) }, true));
      return;
    }
    const from = format.isCumulative ? BEGIN : position;
    const running = end === undefined ? choice.running?.(from) : undefined;
    const contents = running === undefined ? format.chunk(generation, from, index) : {};
    choice.position = { tokens: tokens.count, characters: tokens.textLength, ...(message && { message }) };
    choice.isEnded = end !== undefined;
    if (this.choices.some(({ isEnded }) => !isEnded)) {
      const text = running === undefined ? withOpaqueTexts(() => this.written(contents)) : `data: ${running}\n\n`;
      if (typeof text === 'string') {
        this.hasWritten = writeChunk(response, text, this.hasWritten);
        return;
      }
      writeParts(response, text);
      this.hasWritten = true;
      return;
    }
    addRecorded(this.generations, response);
    const trailer = format.trailer?.(this.generations);
    const last = withOpaqueTexts(() =>
      trailer === undefined ? this.written(contents, true) : this.written(contents) + this.written(trailer, true),
    );
    endWith(response, last);
  }

  private written(contents: object, isLast = false): string {
    if (!this.format.hasNamedEvents) {
      const events = Array.isArray(contents) ? contents.map(formatEvent).join('') : formatEvent(contents);
      return isLast ? `${events}data: [DONE]\n\n` : events;
    }
    const events = (Array.isArray(contents) ? contents : [contents]) as { type?: string }[];
    return events.map((one) => `event: ${one.type}\n${formatEvent(one)}`).join('');
  }
}

function formatEvent(contents: object): string {
  return `data: ${JSON.stringify(contents)}\n\n`;
}
