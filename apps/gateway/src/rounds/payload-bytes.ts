import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  GetPayloadRequest,
  invalidField,
  LIMITS,
  PutPayloadRequest,
  type PutPayloadReply,
} from '@broomwagon/contracts';
import { ControlPlane } from '@broomwagon/generation';
import { fieldsOfQuery, validate, type ContractClass } from '@broomwagon/messaging';
import { writePart } from '@broomwagon/platform';
import type { Exchange } from '../http/route';
import { sendJson } from '../http/send-json';
import { CALL_TIMEOUT_MS, parseQuery, REPEAT_MS } from './calls';

const CHUNK_BYTES = LIMITS.payloadChunkBytes;

/** Payloads as bytes: the body of the request or of the response. One chunk of 256 kB is in memory at a time. */
@Injectable()
export class PayloadBytes {
  constructor(private readonly controlPlane: ControlPlane) {}

  /**
   * Stores the body, and answers with the reply of the last `payload.put`.
   * @throws BroomwagonError errors of `payload.put`
   */
  async put({ request, response }: Exchange): Promise<void> {
    const fields = fieldsWithout(PutPayloadRequest, request, ['chunkIndex', 'chunkCount', 'data']);
    const bytes = Number(request.headers['content-length'] ?? Number.NaN);
    if (Number.isNaN(bytes)) throw invalidField('Content-Length', 'is required');
    const chunkCount = Math.max(1, Math.ceil(bytes / CHUNK_BYTES));
    if (chunkCount > LIMITS.payloadChunks) {
      const message = `A payload has at most ${LIMITS.payloadChunks * CHUNK_BYTES} bytes`;
      throw new BroomwagonError('PAYLOAD_TOO_LARGE', message);
    }
    const toPutRequest = (data: Buffer, chunkIndex: number) =>
      validate(PutPayloadRequest, { ...fields, chunkIndex, chunkCount, data: data.toString('base64') });
    toPutRequest(Buffer.alloc(0), 0);
    let reply: PutPayloadReply = { receivedChunks: 0 };
    let chunkIndex = 0;
    for await (const data of splitChunks(request)) {
      const options = { timeoutMs: CALL_TIMEOUT_MS };
      reply = await this.controlPlane.call('payload.put', toPutRequest(data, chunkIndex), options);
      chunkIndex += 1;
    }
    sendJson(response, 200, reply);
  }

  /** @throws BroomwagonError errors of `payload.get`, if nothing was sent */
  async get({ request, response }: Exchange): Promise<void> {
    const { ref } = validate(GetPayloadRequest, fieldsWithout(GetPayloadRequest, request, ['chunkIndex']));
    let chunk = await this.controlPlane.call('payload.get', { ref }, { timeoutMs: CALL_TIMEOUT_MS });
    const { bytes, chunkCount } = chunk;
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes });
    while ((await writePart(response, Buffer.from(chunk.data, 'base64'))) && chunk.chunkIndex + 1 < chunkCount) {
      const next = { ref, chunkIndex: chunk.chunkIndex + 1 };
      chunk = await this.controlPlane.callWithRetry('payload.get', next, { deadlineMs: REPEAT_MS });
    }
    response.end();
  }
}

/** @param own fields that a caller cannot give @throws BroomwagonError VALIDATION_FAILED */
function fieldsWithout(contract: ContractClass, request: IncomingMessage, own: readonly string[]) {
  const fields = fieldsOfQuery(contract, parseQuery(request));
  const given = own.find((name) => Object.hasOwn(fields, name));
  if (given !== undefined) throw invalidField(given, 'is not a parameter: the whole payload is sent');
  return fields;
}

/** The body in chunks of equal size, the last one shorter; one empty chunk for an empty body. */
async function* splitChunks(request: IncomingMessage): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0);
  let isEmpty = true;
  // A destroyed request could not be answered.
  for await (const part of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    isEmpty = false;
    rest = Buffer.concat([rest, part]);
    for (; rest.length >= CHUNK_BYTES; rest = rest.subarray(CHUNK_BYTES)) yield rest.subarray(0, CHUNK_BYTES);
  }
  if (isEmpty || rest.length > 0) yield rest;
}
