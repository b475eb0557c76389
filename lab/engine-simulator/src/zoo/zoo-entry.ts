import type { ServerResponse } from 'node:http';
import type { EngineDialect, ErrorCode } from '@broomwagon/contracts';
import type { GenerateCall } from '../http/generate-call';
import type { Chunk } from './chunk';

/** What a stream consists of. Nothing is sent after `end` and `close`. */
export type Frame =
  | { kind: 'chunk'; chunk: Chunk }
  /** A JSON value under `data:`, after a line `event:` if it has a name. */
  | { kind: 'value'; value: unknown; event?: string }
  /** A comment, after a line `event:` if it has a name. */
  | { kind: 'comment'; text: string; event?: string }
  | { kind: 'done' }
  /** The response ends, or its connection breaks. */
  | { kind: 'end' }
  | { kind: 'close' };

export type SendFrame = (frame: Frame) => void;

export interface StageContext {
  call: GenerateCall;
  /** Position at which the behaviour shows, tokens. */
  at: number;
  /** Text of the last token of the prompt; empty if the prompt has no ids. */
  before: string;
  /** Takes the request out of the engine. */
  drop: () => void;
}

/** Makes the frames of one stream into others: called once for each stream. */
export type Stage = (context: StageContext, send: SendFrame) => SendFrame;

/** SGLang: what each chunk has, all of the response or what is new. */
export interface ChunkForm {
  text: 'whole' | 'new';
  ids: 'whole' | 'new';
}

/** How frames become bytes. */
export interface WireForm {
  lineEnd?: '\r\n';
  /** Bytes of one HTTP chunk; default: those of one frame. */
  chunkBytes?: number;
  /** `accepted`: if the client accepts it. */
  gzip?: 'always' | 'accepted';
  /** The connection breaks at the byte `at`. */
  isCut?: boolean;
}

/** Behaviours of a server that do not depend on a request. */
export interface ServerForm {
  /** Status of `/health`. */
  healthStatus?: number;
  /** An abort by id is answered and does nothing. */
  ignoresAborts?: boolean;
  /** A closed connection does not end its request. */
  missesCloses?: boolean;
  /** Metrics and loads stay as they were when the behaviour began. */
  hasStaleLoad?: boolean;
  /** The engine is started again once, with these differences. */
  restart?: { model?: string; kvShare?: number; dialect?: (before: EngineDialect) => EngineDialect };
}

/** A row of the table of docs/engines.md. */
export interface ZooRow {
  name: string;
  dialects: readonly EngineDialect[];
  /** What the engine does. */
  behaviour: string;
  /** File of the engine, or address of a public report. */
  source: string;
  /** Release that shows the behaviour. */
  release: string;
  /** What Broomwagon does. */
  broomwagon: string;
  /** Spec file that runs a test of this name. */
  test: string;
}

/** One behaviour of real engines. */
export interface ZooEntry extends ZooRow {
  /** How a call that shows the behaviour ends, where it does not end as without the behaviour. */
  failure?: ErrorCode | 'aborted';
  stage?: Stage;
  form?: ChunkForm;
  wire?: WireForm;
  server?: ServerForm;
  /** Shows only in responses with tool calls. */
  isAboutTools?: true;
  /** Some tokens end within a character: decoded alone, they end with a replacement character. */
  endsWithinCharacters?: true;
  /** Loses text together with other behaviours, as docs/engines.md describes: no pair has the entry. */
  isAlone?: true;
  /** Changes the call before it runs. */
  prepare?: (call: GenerateCall) => void;
  /** Answers a generate call in place of the engine. */
  answer?: (response: ServerResponse) => void;
}
