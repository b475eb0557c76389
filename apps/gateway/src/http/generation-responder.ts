import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { Generation, GenerationInput } from '../generations/generation';
import { GenerationRegistry } from '../generations/generation-registry';
import { headersOf } from './generation-headers';
import type { Exchange } from './route';
import { errorBody, sendJson } from './send-json';

const EVENT_STREAM = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };

/** Where a reader is: tokens before it, and characters of their text. */
export interface Position {
  tokens: number;
  characters: number;
}

export const BEGIN: Position = { tokens: 0, characters: 0 };

/** A request for a generation, as a dialect has read it. */
export interface GenerationRequest {
  id: string;
  /** The client has chosen the id, and may repeat the request with it. */
  isOwnId: boolean;
  stream: boolean;
  input: GenerationInput;
}

/** Writes an answer, or a chunk of a stream with the tokens after a position. */
export type Format = (generation: Generation, from: Position) => object;

/** Runs generations for requests, and writes them in the format of the dialect. */
@Injectable()
export class GenerationResponder {
  constructor(private readonly generations: GenerationRegistry) {}

  /**
   * @param isCumulative each chunk has all tokens so far
   * @throws BroomwagonError the error that ended the generation, if nothing was sent
   */
  async respond(
    { response, caller, digest }: Exchange,
    { id, isOwnId, stream, input }: GenerationRequest,
    format: Format,
    isCumulative = false,
  ): Promise<void> {
    // The client went while its key was checked: its close comes no more.
    if (response.destroyed) return;
    const asked = { id, isOwnId, tokenId: caller.tokenId, digest: isOwnId ? digest() : undefined };
    const generation = this.generations.open(asked, input);
    response.once('close', () => this.generations.leave(generation, response.writableFinished));
    if (stream) return writeStream(generation, response, format, isCumulative);
    const end = await generation.ended();
    setHeaders(generation, response);
    if (end.reason === 'error') throw end.error;
    sendJson(response, 200, format(generation, BEGIN));
  }
}

/** Writes a chunk whenever the client has taken the one before: a slow client gets fewer and longer chunks. */
function writeStream(
  generation: Generation,
  response: ServerResponse,
  format: Format,
  isCumulative: boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let position = BEGIN;
    const write = (): void => {
      const { tokens, end } = generation;
      if (response.destroyed || response.writableNeedDrain || response.writableEnded) return;
      const isNew = tokens.count > position.tokens || tokens.text.length > position.characters;
      if (!isNew && end === undefined) return;
      if (!response.headersSent) {
        setHeaders(generation, response);
        if (end?.reason === 'error' && tokens.count === 0) return reject(end.error);
        response.writeHead(200, EVENT_STREAM);
      }
      generation.isSent ||= tokens.count > 0;
      const isError = end?.reason === 'error';
      const chunk = isError ? { error: errorBody(end.error) } : format(generation, isCumulative ? BEGIN : position);
      position = { tokens: tokens.count, characters: tokens.text.length };
      const event = `data: ${JSON.stringify(chunk)}\n\n`;
      if (end === undefined) response.write(event);
      else response.end(`${event}data: [DONE]\n\n`);
    };
    const off = generation.onChange(write);
    response.on('drain', write);
    response.once('close', () => {
      off();
      resolve();
    });
    write();
  });
}

function setHeaders(generation: Generation, response: ServerResponse): void {
  for (const [name, value] of Object.entries(headersOf(generation))) response.setHeader(name, value);
}
