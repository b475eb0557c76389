import { type AdminClient, AdminApiError, iterateEvents, type StreamedEvent } from '@broomwagon/admin-client';
import { type PoolEventType, SELDOM_EVENTS } from './event-types';
import type { Failure } from './live-state';
import { nowMs } from './server-clock';

/** Maximum events; older events are forgotten. */
const MAX_EVENTS = 1_000;
/** Interval at which new events are shown together, milliseconds: thousands of events cost as much as a few. */
const BATCH_MS = 500;
const RETRY_MS = 5_000;
export const NONE: readonly StreamedEvent[] = [];

/** State of the connection by which new events come. */
export type EventLink =
  { state: 'connecting'; sinceMs: number } | { state: 'open' } | { state: 'broken'; failure: Failure };

/** Keeps the last events of a pool. All components share one connection. */
export class EventStore {
  /** Events, the latest first. Each change makes a new array. */
  events = NONE;
  link: EventLink = { state: 'connecting', sinceMs: nowMs() };
  private types: readonly PoolEventType[] = SELDOM_EVENTS;
  private pending: StreamedEvent[] = [];
  private readonly listeners = new Set<(added: readonly StreamedEvent[]) => void>();
  private timer?: ReturnType<typeof setTimeout>;
  private control = new AbortController();
  private lastId?: string;

  constructor(
    private readonly client: AdminClient,
    private readonly pool: string,
  ) {}

  /** Reads events of these types from now on. */
  read(types: readonly PoolEventType[]): void {
    this.types = types;
    this.stop();
    this.start();
  }

  start(): void {
    this.control = new AbortController();
    void this.follow(this.control.signal);
  }

  stop(): void {
    this.control.abort();
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  readonly listen = (listener: (added: readonly StreamedEvent[]) => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private async follow(signal: AbortSignal): Promise<void> {
    const onOpen = () => this.change({ state: 'open' });
    const onEnd = (error: AdminApiError) => {
      const sinceMs = this.link.state === 'broken' ? this.link.failure.sinceMs : nowMs();
      this.change({ state: 'broken', failure: { error, sinceMs } });
    };
    while (!signal.aborted) {
      try {
        const options = { query: { type: [...this.types] }, lastId: this.lastId, signal, onOpen, onEnd };
        for await (const streamed of iterateEvents(this.client, this.pool, options)) this.take(streamed);
      } catch (cause) {
        onEnd(AdminApiError.ofFailure(cause));
      }
      await new Promise((settle) => setTimeout(settle, RETRY_MS));
    }
  }

  private change(link: EventLink): void {
    if (this.link.state === 'open' && link.state === 'open') return;
    this.link = link;
    this.publish();
  }

  private take(streamed: StreamedEvent): void {
    this.lastId = streamed.id;
    this.pending.push(streamed);
    if (this.pending.length > MAX_EVENTS) this.pending.shift();
    this.timer ??= setTimeout(() => this.publish(), BATCH_MS);
  }

  private publish(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const added = this.pending.toReversed();
    this.pending = [];
    this.events = [...added, ...this.events].slice(0, MAX_EVENTS);
    for (const listener of this.listeners) listener(added);
  }
}
