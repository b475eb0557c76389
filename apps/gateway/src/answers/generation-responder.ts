import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { type BroomwagonError, invalidField } from '@broomwagon/contracts';
import { GatewayConfig } from '../gateway.config';
import type { Generation } from '../core/generation';
import { GenerationRegistry, type OpenRequest } from '../core/generation-registry';
import { isSent, readHeaderText } from '../http/headers';
import { toCallerError } from '../keys/hidden-addresses';
import { checkedJob } from '../core/recording/trajectory-recorder';
import { whenClosed } from '../http/client-connection';
import { BEGIN, type Format } from './format';
import { addRecorded, announceRecorded, buildDetails, setHeaders, setRecorded } from './generation-headers';
import { PassedWriter } from './passed-writer';
import { readStreamInterval } from './placement';
import { toRepeatIdentity } from './repeat-identity';
import type { RequestId } from './request-id';
import type { Exchange } from '../http/route';
import { sendJson } from '../http/send-json';
import { beginJson, keepFromSilence } from '../http/silence-keeper';
import { StreamWriter } from './stream-writer';

/** A request for one or more generations, as a dialect has read it. */
export interface GenerationRequest extends RequestId, Pick<OpenRequest, 'inputs'> {
  stream: boolean;
}

/** Runs generations for requests, and writes them in the format of the dialect. */
@Injectable()
export class GenerationResponder {
  constructor(
    private readonly generations: GenerationRegistry,
    private readonly config: GatewayConfig,
  ) {}

  /**
   * @param format absent: the answer of the engine is passed on unchanged
   * @throws BroomwagonError the error that ended a generation, if nothing was sent
   */
  async respond(
    { request: { headers }, response, caller, digest }: Exchange,
    { id, isOwnId, choiceIds, stream, inputs }: GenerationRequest,
    format?: Format,
  ): Promise<void> {
    // The client disconnected while its key was checked: no event `close` follows.
    if (response.destroyed) return;
    const { tokenId, maxGenerations } = caller;
    const { sessionId } = inputs[0]!.placement;
    const isRecorded = caller.isPathSession === true && this.config.recordSessions === 'path';
    const recordFor = parseRecordedJob(headers, sessionId, isRecorded);
    const hasDetails = isSent(headers, 'x-broomwagon-details', 'body');
    const streamInterval = readStreamInterval(headers);
    if (streamInterval !== undefined) {
      // A field of the body has precedence.
      for (const input of inputs) input.sampling = Object.assign({ streamInterval }, input.sampling);
    }
    const repeat = toRepeatIdentity({ id, isOwnId, sessionId, headers, digest });
    const generations = this.generations.open({ id, choiceIds, inputs, tokenId, maxGenerations, recordFor, repeat });
    whenClosed(response, (isDelivered) => {
      for (const generation of generations) this.generations.leave(generation, isDelivered);
    });
    const { silenceMs } = this.config;
    const shown = (error: BroomwagonError) => toCallerError(error, caller.role);
    if (format === undefined) return new PassedWriter(generations[0]!, response, stream, shown).run(silenceMs);
    if (stream) return new StreamWriter(generations, response, format, shown).run(silenceMs);
    const begin = (): void => {
      setHeaders(generations[0]!, response);
      announceRecorded(generations, response);
      beginJson(response);
    };
    const silence = keepFromSilence(response, silenceMs, begin, ' ');
    const answers = generations.map((generation) => succeeded(generation, response));
    await Promise.all(answers).finally(() => clearInterval(silence));
    setHeaders(generations[0]!, response);
    if (response.headersSent) addRecorded(generations, response);
    else setRecorded(generations, response);
    const answer = format.whole?.(generations) ?? format.chunk(generations[0]!, BEGIN, 0);
    sendJson(response, 200, hasDetails ? withDetails(answer, generations) : answer);
  }
}

/**
 * The job for which a session is recorded, even if nobody has opened the session.
 * @param isRecorded records the session even if its client does not request it
 * @throws BroomwagonError VALIDATION_FAILED
 */
function parseRecordedJob(
  headers: IncomingHttpHeaders,
  sessionId: string | undefined,
  isRecorded: boolean,
): string | undefined {
  if (!isSent(headers, 'x-broomwagon-trajectory', 'record') && !isRecorded) return undefined;
  if (sessionId === undefined) throw invalidField('x-broomwagon-trajectory', 'needs a session');
  return checkedJob(readHeaderText(headers, 'x-broomwagon-job'), 'x-broomwagon-job');
}

/**
 * Adds details to an answer. One object gets the details of all choices; in a list, each answer gets its own details.
 */
function withDetails(answer: object, generations: Generation[]): object {
  const details = generations.map(buildDetails);
  if (Array.isArray(answer)) return answer.map((one: object, index) => ({ ...one, broomwagon: details[index] }));
  return { ...answer, broomwagon: details.length === 1 ? details[0] : details };
}

/** Waits for the end of a generation. @throws BroomwagonError the error that ended it */
async function succeeded(generation: Generation, response: ServerResponse): Promise<void> {
  const end = await generation.ended;
  if (end.reason !== 'error') return;
  setHeaders(generation, response);
  setRecorded([generation], response);
  throw end.error;
}
