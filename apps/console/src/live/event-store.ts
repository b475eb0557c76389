import { type AdminClient, AdminApiError, iterateEvents, type StreamedEvent } from '@broomwagon/admin-client';
import { type PoolEventType, SELDOM_EVENTS } from './event-types';

/** Maximum events; older events are forgotten. */
const MAX_EVENTS = 1_000;
/** Interval at which new events are shown together, milliseconds: thousands of events cost as much as a few. */
const BATCH_MS = 500;
const RETRY_MS = 5_000;
export const NONE: readonly StreamedEvent[] = [];

/** Keeps the last events of a pool. All components share one connection. */
export class EventStore {
  /** Events, the latest first. Each change makes a new array. */
  events = NONE;
  /** Reason why no new events come at present. */
  error?: AdminApiError;
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
    const onOpen = () => {
      if (this.error === undefined) return;
      this.error = undefined;
      this.publish();
    };
    while (!signal.aborted) {
      try {
        const options = { query: { type: [...this.types] }, lastId: this.lastId, signal, onOpen };
        for await (const streamed of iterateEvents(this.client, this.pool, options)) this.take(streamed);
      } catch (cause) {
        this.error = AdminApiError.ofFailure(cause);
        this.publish();
      }
      await new Promise((settle) => setTimeout(settle, RETRY_MS));
    }
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
