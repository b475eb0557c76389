import type { ServerResponse } from 'node:http';
import type { EngineDialect, ErrorCode } from '@broomwagon/contracts';
import type { GenerateCall, IntervalRule } from '../http/generate-call';
import type { Chunk } from './chunk';

/** A part of a stream. Nothing is sent after `end` and `close`. */
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
  /** Position at which the behaviour starts, tokens. */
  at: number;
  /** Text of the last token of the prompt; empty if the prompt has no ids. */
  before: string;
  /** Takes the request out of the engine. */
  drop: () => void;
}

/** Transforms the frames of a stream; called once for each stream. */
export type Stage = (context: StageContext, send: SendFrame) => SendFrame;

/** SGLang: whether each chunk has the whole text and all ids so far, or new ones only. */
export interface ChunkForm {
  text: 'whole' | 'new';
  ids: 'whole' | 'new';
}

/** Form in which frames are written as bytes. */
export interface WireForm {
  lineEnd?: '\r\n';
  /** Bytes per HTTP chunk; default: one chunk per frame. */
  chunkBytes?: number;
  /** Compression of the stream; `accepted`: if the client accepts it. */
  gzip?: 'always' | 'accepted';
  /** Whether the connection breaks at the byte `at`. */
  isCut?: boolean;
}

/** Behaviours of a server that do not depend on a request. */
export interface ServerForm {
  /** Status of `/health`. */
  healthStatus?: number;
  /** Whether an abort by id is answered and does nothing. */
  ignoresAborts?: boolean;
  /** Whether a closed connection does not end its request. */
  missesCloses?: boolean;
  /** What is done with the field `stream_interval`; default: the field is taken. */
  intervalRule?: IntervalRule;
  /** Whether metrics and loads stay as they were when the behaviour started. */
  hasStaleLoad?: boolean;
  /** Differences with which the engine is restarted once. */
  restart?: { model?: string; kvShare?: number; dialect?: (before: EngineDialect) => EngineDialect };
}

/** A row of the table of docs/engines.md. */
export interface ZooRow {
  name: string;
  dialects: readonly EngineDialect[];
  /** Behaviour of the engine, starting with a verb. */
  behaviour: string;
  /** File of the engine, or address of a public report. */
  source: string;
  /** Release that shows the behaviour. */
  release: string;
  /** Reaction of Broomwagon. */
  broomwagon: string;
  /** Spec file that runs a test of this name. */
  test: string;
}

/** One behaviour of real engines. */
export interface ZooEntry extends ZooRow {
  /** End of a call with the behaviour, if the call does not end as it would without. */
  failure?: ErrorCode | 'aborted';
  stage?: Stage;
  form?: ChunkForm;
  wire?: WireForm;
  server?: ServerForm;
  /** Whether the behaviour occurs only in responses with tool calls. */
  isAboutTools?: true;
  /** Whether the behaviour occurs only in responses with a stop text. */
  isAboutStops?: true;
  /** Whether some tokens end within a character; decoded alone, they end with a replacement character. */
  endsWithinCharacters?: true;
  /** Whether the behaviour loses text in pairs with others, as docs/engines.md describes, so that no pair has it. */
  isAlone?: true;
  /** Changes the call before it runs. */
  prepare?: (call: GenerateCall) => void;
  /** Answers a generate call in place of the engine. */
  answer?: (response: ServerResponse) => void;
}
