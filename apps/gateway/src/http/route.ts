import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BroomwagonError, Role } from '@broomwagon/contracts';
import type { Caller } from '../keys/api-keys';

/** One request and its response. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  caller: Caller;
  /** The value of `{id}` or `{pool}` in the path. */
  pathId?: string;
  /** The body; empty without one, and of GET. */
  body: Record<string, unknown>;
  /** The body as it came. */
  bytes: Buffer;
  /** SHA-256 of the route and the bytes of the body. */
  digest: () => string;
}

/** A route of a dialect. What it throws is answered in its dialect. */
export interface Route {
  /** Needs no key, and its body is not read. */
  isPublic?: boolean;
  /** Lowest role of the key. Default: `client`. */
  role?: Role;
  /** Maximum size of the body, bytes; 0: the route reads the body itself. Default: MAX_BODY_BYTES. */
  maxBodyBytes?: number;
  /** The field `error` of an error; all routes of a path have the same. Default: that of OpenAI. */
  errorBody?(error: BroomwagonError): object;
  /** An error has `type: error` beside the field `error`. */
  hasErrorType?: boolean;
  answer(exchange: Exchange): void | Promise<void>;
}

/** Routes by `METHOD /path`. */
export type Routes = Record<string, Route>;
