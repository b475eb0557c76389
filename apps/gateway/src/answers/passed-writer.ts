import type { ServerResponse } from 'node:http';
import { BroomwagonError } from '@broomwagon/contracts';
import type { Generation } from '../core/generation';
import { addRecorded, announceRecorded, setHeaders, setRecorded } from './generation-headers';
import { endWith, errorBody } from '../http/send-json';
import { beginJson, isBegun, keepFromSilence } from '../http/silence-keeper';
import { COMMENT, EVENT_STREAM } from './stream-writer';

/** Writes an answer of an engine unchanged: a stream piece by piece, any other answer at its end. */
export class PassedWriter {
  private silence: NodeJS.Timeout | undefined;
  /** Number of written pieces of a stream. */
  private written = 0;

  /**
   * @param isStream the client has asked for a stream
   * @param shown converts an error to the form that the caller may see
   */
  constructor(
    private readonly generation: Generation,
    private readonly response: ServerResponse,
    private readonly isStream: boolean,
    private readonly shown: (error: BroomwagonError) => BroomwagonError,
  ) {}

  /** Resolves when the response is closed. @throws BroomwagonError the error of the generation, if nothing was sent */
  run(silenceMs: number): Promise<void> {
    const { response, generation } = this;
    const begin = (): void => {
      setHeaders(generation, response);
      announceRecorded([generation], response);
      if (this.isStream) response.writeHead(200, EVENT_STREAM);
      else beginJson(response);
    };
    this.silence = keepFromSilence(response, silenceMs, begin, this.isStream ? COMMENT : ' ');
    return new Promise((resolve, reject) => {
      const write = (): void => {
        if (response.destroyed || response.writableEnded || response.writableNeedDrain) return;
        const error = this.writeNew();
        if (error === undefined && !response.writableEnded) return;
        off();
        if (error !== undefined) reject(error);
      };
      const stopListening = generation.onChange(write);
      const off = (): void => {
        clearInterval(this.silence);
        stopListening();
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

  /** @returns the error if nothing was sent */
  private writeNew(): BroomwagonError | undefined {
    const { response, generation } = this;
    const { answer, end } = generation;
    if (answer?.isWhole === false) {
      // A client that has received a piece cannot get the answer of another call.
      generation.markSent();
      this.silence?.refresh();
      if (!response.headersSent) this.head(200, answer.contentType);
      while (this.written < answer.pieces.length) {
        if (!response.write(answer.pieces[this.written++]!)) return undefined;
      }
    }
    if (end === undefined) return undefined;
    // Only a started response needs trailers; other responses have the values in their headers.
    if (response.headersSent) addRecorded([generation], response);
    if (answer?.isWhole === true) this.endWhole(answer.status, answer.contentType, answer.pieces);
    else if (end.reason === 'error' || answer === undefined) return this.endWithError();
    else response.end();
    return undefined;
  }

  private endWhole(status: number, contentType: string, pieces: readonly Buffer[]): void {
    const { response } = this;
    if (response.headersSent && !isBegun(response)) {
      // A stream that has started with comments gets the answer as its only event.
      response.end(`data: ${Buffer.concat(pieces).toString('utf8')}\n\ndata: [DONE]\n\n`);
      return;
    }
    if (!response.headersSent) this.head(status, contentType);
    endWith(response, pieces);
  }

  private endWithError(): BroomwagonError | undefined {
    const { response, generation } = this;
    const { end } = generation;
    const error =
      end?.reason === 'error' ? end.error : new BroomwagonError('ABORTED', 'The request was aborted before its answer');
    setHeaders(generation, response);
    setRecorded([generation], response);
    if (!response.headersSent || isBegun(response)) return error;
    response.end(`data: ${JSON.stringify({ error: errorBody(this.shown(error)) })}\n\ndata: [DONE]\n\n`);
    return undefined;
  }

  private head(status: number, contentType: string): void {
    const { response, generation } = this;
    setHeaders(generation, response);
    if (generation.end === undefined) announceRecorded([generation], response);
    else setRecorded([generation], response);
    response.writeHead(status, { 'content-type': contentType || 'application/octet-stream' });
  }
}
