import type { ServerResponse } from 'node:http';
import type { TokenSink } from '../engine/simulated-engine.types';
import type { AnswerFormat } from '../http/answer-format';
import type { GenerateCall } from '../http/generate-call';
import { decodeHalves } from './stages/half-characters';
import { sglangForm } from './stages/sglang-form';
import { streamInterval as collectTokens } from './stages/stream-interval';
import { Wire } from './wire';
import { findEntries } from './zoo';
import type { ChunkForm, ServerForm, StageContext, WireForm, ZooEntry } from './zoo-entry';
import { ZooSink } from './zoo-sink';

export interface ZooSelection {
  /** Names of the entries. */
  entries: readonly string[];
  /** Position in a stream at which its behaviours start: tokens, or bytes for `cut-at-byte`; default 0. */
  at?: number;
  /** Number of generate calls with these entries; default: all. */
  count?: number;
  /** Number of tokens of each call after which the engine stands still until the call is aborted; default: never. */
  standsAt?: number;
  /** Names of the entries of later calls; default: none. */
  later?: readonly string[];
}

/** Active behaviours of one engine. */
export class ActiveZoo {
  private entries: readonly ZooEntry[] = [];
  private at = 0;
  private callsLeft = Infinity;
  private later: readonly ZooEntry[] = [];
  server: ServerForm = {};
  standsAt: number | undefined;

  /** Replaces the behaviours. @throws RangeError for an unknown name */
  select({ entries, at = 0, count = Infinity, later = [], standsAt }: ZooSelection): void {
    this.standsAt = standsAt;
    this.later = findEntries(later);
    this.entries = findEntries(entries);
    this.at = at;
    this.callsLeft = count;
    this.server = Object.assign({}, ...this.entries.map(({ server }) => server)) as ServerForm;
  }

  /** Takes the behaviours of a call that has just arrived; undefined: none. */
  take({ stop }: Pick<GenerateCall, 'stop'>): ZooTurn | undefined {
    const selected = this.callsLeft > 0 ? this.entries : this.later;
    this.callsLeft -= 1;
    // Plain responses are faster than responses through stages.
    const entries = stop === undefined ? selected.filter(({ isAboutStops }) => !isAboutStops) : selected;
    if (entries.length === 0) return undefined;
    return new ZooTurn(entries, this.at);
  }

  /** SGLang: form of the chunks. @param cumulative form without a behaviour, as the engine was started */
  chunkForm(cumulative: boolean): ChunkForm {
    const own = cumulative ? 'whole' : 'new';
    return this.entries.findLast(({ form }) => form !== undefined)?.form ?? { text: own, ids: own };
  }

  /** Text of token ids, as the tokenizer of the engine decodes them. */
  decode(text: string): string {
    return this.entries.some(({ endsWithinCharacters }) => endsWithinCharacters) ? decodeHalves(text) : text;
  }
}

/** Behaviours of one generate call. */
export class ZooTurn {
  constructor(
    private readonly entries: readonly ZooEntry[],
    private readonly at: number,
  ) {}

  /** @returns true if a behaviour has answered the call */
  answers(response: ServerResponse): boolean {
    const entry = this.entries.find(({ answer }) => answer !== undefined);
    entry?.answer?.(response);
    return entry !== undefined;
  }

  prepare(call: GenerateCall): void {
    for (const { prepare } of this.entries) prepare?.(call);
  }

  /** @param start position of the first token of this call */
  sink(
    response: ServerResponse,
    format: AnswerFormat,
    {
      call,
      form,
      start,
      before,
      drop,
      streamInterval,
    }: Omit<StageContext, 'at'> & {
      form: ChunkForm;
      start: number;
      streamInterval: number;
    },
  ): TokenSink {
    const bytes = Object.assign({}, ...this.entries.map((entry) => entry.wire)) as WireForm;
    const wire = new Wire(response, bytes, this.at);
    const stages = this.entries.flatMap(({ stage }) => stage ?? []);
    if (streamInterval > 1) stages.push(collectTokens(streamInterval));
    // The last stage gives SGLang's form to the result of all other stages.
    stages.push(sglangForm(form));
    return new ZooSink(format, { call, at: this.at, before, drop }, stages, start, wire.send);
  }
}
