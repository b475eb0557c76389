import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { GatewayConfig } from '../gateway.config';
import type { Generation } from '../generations/generation';
import { GenerationRegistry } from '../generations/generation-registry';
import type { Exchange, Routes } from '../http/route';
import { errorBody, sendJson } from '../http/send-json';
import { readGenerateRequest } from './generate-request';
import { BEGIN, headersOf, type Position, replyOf } from './generate-reply';

const EVENT_STREAM = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };

/** `/generate` of SGLang. */
@Injectable()
export class SglangGenerate {
  readonly routes: Routes = { 'POST /generate': { answer: (exchange) => this.generate(exchange) } };

  constructor(
    private readonly generations: GenerationRegistry,
    private readonly config: GatewayConfig,
  ) {}

  private async generate({ request, response, caller, body, digest }: Exchange): Promise<void> {
    const { id, isOwnId, stream, input } = readGenerateRequest(body, request.headers, caller);
    // The client went while its key was checked: its close comes no more.
    if (response.destroyed) return;
    const asked = { id, isOwnId, tokenId: caller.tokenId, digest: isOwnId ? digest() : undefined };
    const generation = this.generations.open(asked, input);
    response.once('close', () => this.generations.leave(generation, response.writableFinished));
    if (stream) await this.stream(generation, response);
    else await this.answer(generation, response);
  }

  /** @throws BroomwagonError the error that ended the generation */
  private async answer(generation: Generation, response: ServerResponse): Promise<void> {
    const end = await generation.ended();
    setHeaders(generation, response);
    if (end.reason === 'error') throw end.error;
    sendJson(response, 200, replyOf(generation, BEGIN));
  }

  /**
   * Writes a chunk whenever the client has taken the one before: a slow client gets fewer and longer chunks.
   * @throws BroomwagonError the error that ended the generation, if nothing was sent
   */
  private stream(generation: Generation, response: ServerResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      let position: Position = BEGIN;
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
        const chunk =
          end?.reason === 'error'
            ? { error: errorBody(end.error) }
            : replyOf(generation, this.config.incrementalStreams ? position : BEGIN);
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
}

function setHeaders(generation: Generation, response: ServerResponse): void {
  for (const [name, value] of Object.entries(headersOf(generation))) response.setHeader(name, value);
}
