import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../keys/api-keys';

/** One request and its response. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  caller: Caller;
  /** The id in a path that ends with `{id}`. */
  pathId?: string;
  /** The body; empty without one. */
  body: Record<string, unknown>;
  /** SHA-256 of the bytes of the body. */
  digest: () => string;
}

/** A route of a dialect. What it throws is answered in its dialect. */
export interface Route {
  /** Needs no key. */
  isPublic?: boolean;
  answer(exchange: Exchange): void | Promise<void>;
}

/** Routes by `METHOD /path`. */
export type Routes = Record<string, Route>;
