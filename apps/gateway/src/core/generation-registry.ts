import { EventEmitter, once } from 'node:events';
import { Injectable } from '@nestjs/common';
import { BroomwagonError, type Integer } from '@broomwagon/contracts';
import type { StopCause } from '@broomwagon/generation';
import { GatewayConfig } from '../gateway.config';
import { GatewayMetrics } from '../gateway-metrics';
import { AbortMemory } from './abort-memory';
import { Generation } from './generation';
import { GenerationClaims } from './generation-claims';
import type { GenerationInput } from './generation-input';
import { GenerationRunner } from './generation-runner';
import type { RepeatIdentity } from './repeat-identity';

/** Generations that an abort selects. */
export interface AbortTarget {
  /** Id of one choice, or of a request, which selects all its choices. */
  id?: string;
  /** Selects all generations, instead of `id`. */
  all?: boolean;
  /** Selects all ids that begin with `id`. */
  isPrefix?: boolean;
  /** Limits the abort to generations of this key; absent: every key. */
  tokenId?: string;
}

export interface OpenRequest {
  id: string;
  /** One input for each choice. If there are several, the id of a choice is the id of the request with `-<index>`. */
  inputs: GenerationInput[];
  /** Ids of the choices, if the client sends one for each. */
  choiceIds?: string[];
  tokenId: string;
  /** Maximum generations of this key at the same time; absent: no limit of the key. */
  maxGenerations?: Integer;
  /** Identity of the request and its repeats; absent: only its connection. */
  repeat?: RepeatIdentity;
  /** Job for which the session is recorded; absent: this request sets no job. */
  recordFor?: string;
}

interface Choice extends Pick<OpenRequest, 'id' | 'repeat'> {
  input: GenerationInput;
}

interface Entry {
  generation: Generation;
  /** Responses that wait for the generation. */
  readers: number;
  /** A reader has got the whole response. */
  isDelivered: boolean;
  /** Ends a generation without readers; undefined while it has readers. */
  timer?: NodeJS.Timeout;
}

/** Generations of this replica by the identity of their repeats, and aborts that arrived before their generation. */
@Injectable()
export class GenerationRegistry {
  private readonly entries = new Map<string, Entry>();
  private readonly running = new Set<Generation>();
  private readonly aborted = new AbortMemory();
  private readonly ends = new EventEmitter();
  /** Called when a remembered abort has ended its generations: no other replica needs to remember it. */
  onAbortTaken: (target: AbortTarget) => void = () => undefined;
  private isDraining = false;

  constructor(
    private readonly runner: GenerationRunner,
    private readonly claims: GenerationClaims,
    private readonly metrics: GatewayMetrics,
    private readonly config: GatewayConfig,
  ) {}

  /** Number of generations that have not ended. */
  get size(): number {
    return this.running.size;
  }

  /**
   * Begins the generations of a request, or joins the generations of the request that it repeats: all choices, or none.
   * Each generation needs a call of {@link leave}.
   * @throws BroomwagonError SHUTTING_DOWN, QUEUE_FULL, RATE_LIMITED, VALIDATION_FAILED, IDEMPOTENCY_KEY_REUSED
   */
  open(request: OpenRequest): Generation[] {
    const choices = buildChoices(request).map((choice) => {
      const known = choice.repeat && this.entries.get(joinKey(request.tokenId, choice.repeat.key));
      return { choice, known, joined: known && isRepeated(known, choice.repeat!) ? known : undefined };
    });
    const count = choices.filter(({ joined }) => joined === undefined).length;
    this.checkRoom(request, count);
    const isAborted = count > 0 && this.takeAbort(request.tokenId, request.id);
    const generations = choices.map(({ choice, known, joined }) => {
      if (joined !== undefined) return this.join(joined, choice.repeat!);
      // This is a second sample of the session: its repeats cannot be distinguished from repeats of the first sample.
      const own = known === undefined ? choice : { ...choice, repeat: undefined };
      return this.add(request, own, isAborted);
    });
    const begun = generations.filter((_, index) => choices[index]!.joined === undefined);
    if (begun.length > 1 && request.repeat !== undefined) this.claims.joinChoices(begun);
    for (const generation of begun) void this.runner.run(generation).then(() => this.onEnd(generation));
    return generations;
  }

  private add(request: OpenRequest, { id, input, repeat }: Choice, isAborted: boolean): Generation {
    const { tokenId, recordFor } = request;
    const generation = new Generation(id, tokenId, input, repeat, recordFor, request.id);
    this.entries.set(buildEntryKey(generation), { generation, readers: 1, isDelivered: false });
    this.running.add(generation);
    this.metrics.running.set(this.running.size);
    if (isAborted || this.takeAbort(tokenId, id)) generation.stop('abort');
    return generation;
  }

  /**
   * Removes a reader. The last reader ends the generation: at once, or after `rejoinMs` if the client may repeat the
   * request.
   * @param isDelivered the reader has got the whole response
   */
  leave(generation: Generation, isDelivered: boolean): void {
    const key = buildEntryKey(generation);
    const entry = this.entries.get(key);
    if (entry?.generation !== generation) return;
    entry.readers -= 1;
    entry.isDelivered ||= isDelivered;
    if (entry.readers > 0) return;
    const end = (): void => {
      this.entries.delete(key);
      this.endWait(entry);
      generation.stop('abort');
      void this.claims.forget(generation);
    };
    if (entry.isDelivered || generation.repeat === undefined) return end();
    entry.timer = setTimeout(end, this.config.rejoinMs).unref();
    this.metrics.unread.inc();
    void this.claims.setUnread(generation, true);
  }

  /** Stops the generations that the abort selects. @returns their number */
  abort({ id, all, isPrefix, tokenId }: AbortTarget): number {
    const meant = [...this.running].filter(
      (generation) =>
        (all || (id !== undefined && isNamed(generation, id, isPrefix))) &&
        (tokenId === undefined || generation.tokenId === tokenId),
    );
    for (const generation of meant) generation.stop('abort');
    return meant.length;
  }

  /** Stops a generation whose request another replica has taken over, and lets no reader join it any more. */
  lose(uid: string): void {
    for (const [key, entry] of this.entries) {
      const { generation, readers } = entry;
      if (generation.uid !== uid) continue;
      generation.lose();
      if (generation.end === undefined || readers > 0) continue;
      this.entries.delete(key);
      this.endWait(entry);
      void this.claims.forget(generation);
    }
  }

  /** Remembers an abort of an id that no generation has. */
  remember({ id = '', tokenId }: AbortTarget): void {
    this.aborted.add(tokenId, id);
  }

  /** Forgets an abort, because another replica has found its generation. */
  forget({ id = '', tokenId }: AbortTarget): void {
    this.aborted.remove(tokenId, id);
  }

  drain(): void {
    this.isDraining = true;
  }

  stopAll(cause: StopCause): void {
    for (const generation of this.running) generation.stop(cause);
  }

  async idle(): Promise<void> {
    while (this.running.size > 0) await once(this.ends, 'end');
  }

  /** @throws BroomwagonError unless this many generations of a request can begin */
  private checkRoom({ tokenId, maxGenerations = Infinity }: OpenRequest, count: number): void {
    if (count === 0) return;
    if (this.isDraining) throw new BroomwagonError('SHUTTING_DOWN', 'This replica is shutting down');
    const most = Math.min(maxGenerations, this.config.maxGenerations);
    if (count > most) {
      const message = `The request has ${count} choices, and at most ${most} generations may run at the same time`;
      throw new BroomwagonError('VALIDATION_FAILED', message);
    }
    if (this.running.size + count > this.config.maxGenerations) {
      const message = `${this.running.size} generations run in this replica (MAX_GENERATIONS)`;
      throw new BroomwagonError('QUEUE_FULL', message, { retryAfterMs: 1_000 });
    }
    if (maxGenerations < Infinity && this.countRunning(tokenId) + count > maxGenerations) {
      const message = `The key may have ${maxGenerations} generations at the same time`;
      throw new BroomwagonError('RATE_LIMITED', message, { retryAfterMs: 1_000 });
    }
  }

  private join(entry: Entry, { kind }: RepeatIdentity): Generation {
    if (entry.timer !== undefined) void this.claims.setUnread(entry.generation, false);
    this.endWait(entry);
    entry.readers += 1;
    this.metrics.joined.inc({ identity: kind });
    return entry.generation;
  }

  private countRunning(tokenId: string): number {
    let count = 0;
    for (const generation of this.running) if (generation.tokenId === tokenId) count += 1;
    return count;
  }

  private endWait(entry: Entry): void {
    if (entry.timer === undefined) return;
    clearTimeout(entry.timer);
    entry.timer = undefined;
    this.metrics.unread.dec();
  }

  private onEnd(generation: Generation): void {
    this.running.delete(generation);
    this.metrics.running.set(this.running.size);
    this.ends.emit('end');
  }

  /** Removes the remembered abort of an id. @returns whether there was one */
  private takeAbort(tokenId: string, id: string): boolean {
    const target = [{ id, tokenId }, { id }].find((one) => this.aborted.remove(one.tokenId, id));
    if (target !== undefined) this.onAbortTaken(target);
    return target !== undefined;
  }
}

function buildChoices({ id, choiceIds, repeat, inputs }: OpenRequest): Choice[] {
  return inputs.map((input, index) => {
    const end = inputs.length === 1 ? '' : `-${index}`;
    return { id: choiceIds?.[index] ?? id + end, input, repeat: repeat && { ...repeat, key: repeat.key + end } };
  });
}

/** Whether the id names the generation or its request, or with `isPrefix` begins the id of the generation. */
function isNamed(generation: Generation, id: string, isPrefix = false): boolean {
  return generation.id === id || generation.requestId === id || (isPrefix && generation.id.startsWith(id));
}

/** Key of an entry. No repeat finds a generation without an identity. */
function buildEntryKey({ tokenId, repeat, uid }: Generation): string {
  return joinKey(tokenId, repeat?.key ?? uid);
}

/**
 * Whether a request is a repeat of the request with the same identity. A session may ask for several samples of one
 * prompt at the same time: while the client reads the first sample, an equal request is another sample, or the repeat
 * of another sample.
 * @throws BroomwagonError IDEMPOTENCY_KEY_REUSED
 */
function isRepeated({ generation, readers }: Entry, { kind, digest }: RepeatIdentity): boolean {
  if (generation.repeat!.digest !== digest) {
    throw new BroomwagonError('IDEMPOTENCY_KEY_REUSED', 'The id belongs to a running request with another body');
  }
  return kind !== 'session' || readers === 0;
}

function joinKey(tokenId: string, id: string): string {
  return `${tokenId}\n${id}`;
}
