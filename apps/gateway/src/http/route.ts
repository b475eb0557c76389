import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BroomwagonError, Role } from '@broomwagon/contracts';
import type { Caller } from '../keys/api-keys';

/** One request and its response. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  caller: Caller;
  /** Value of the parameter in the path, such as `{id}`. */
  pathId?: string;
  /** The parsed body; empty without a body, and for GET. */
  body: Record<string, unknown>;
  /** The bytes of the body as they arrived. */
  bytes: Buffer;
  /** SHA-256 of the route and the bytes of the body. */
  digest: () => string;
}

/** The form of errors; all routes of a path have the same form. */
export interface ErrorForm {
  /** Makes the field `error` of an answer. Default: the form of OpenAI. */
  errorBody?(error: BroomwagonError): object;
  /** The answer of an error has `type: error` beside the field `error`. */
  hasErrorType?: boolean;
}

/** A route of a dialect. Its errors are answered in the form of the dialect. */
export interface Route extends ErrorForm {
  /** The route needs no key, and its body is not read. */
  isPublic?: boolean;
  /** The path ends with `{id}`, and an id may have slashes. */
  idMayHaveSlashes?: true;
  /** Lowest role of the key. Default: `client`. */
  role?: Role;
  /** Maximum size of the body, bytes; 0: the route reads the body itself. Default: MAX_BODY_BYTES. */
  maxBodyBytes?: number;
  answer(exchange: Exchange): void | Promise<void>;
}

/** Routes by `METHOD /path`. A path may have one parameter: `{id}` stands for a part of the path without slashes. */
export type Routes = Record<string, Route>;

export interface RouteSource extends ErrorForm {
  readonly routes: Routes;
  /**
   * Prefix of the paths of this provider. A path with the prefix and without a route gets an error in the form of this
   * provider.
   */
  readonly prefix?: string;
}

/** Token of all providers with routes, which are listed in gateway.routes.ts. */
export const ROUTE_SOURCES = Symbol('route sources');
