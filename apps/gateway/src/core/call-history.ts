import type { Lease } from '@broomwagon/generation';

type CalledServer = Pick<Partial<Lease>, 'serverId' | 'model'>;

/** Calls of engines for one response: their number, the newest server, and times of the first grant and token. */
export class CallHistory {
  /** Start of the generation, `performance.now()`. */
  readonly startedAt = performance.now();
  private calls = 0;
  private clears = 0;
  private server: CalledServer = {};
  private grantedAt: number | undefined;
  private firstTokenAt: number | undefined;

  get attempts(): number {
    return this.calls;
  }

  /** Number of times that the response has started again without its tokens. */
  get restarts(): number {
    return this.clears;
  }

  get serverId(): string | undefined {
    return this.server.serverId;
  }

  /** Name of the model of the newest server, if the server is registered with one. */
  get model(): string | undefined {
    return this.server.model;
  }

  /** Time from the start to the first lease, milliseconds. */
  get queueMs(): number | undefined {
    return this.grantedAt === undefined ? undefined : Math.round(this.grantedAt - this.startedAt);
  }

  /** Time from the first lease to the first token, milliseconds. */
  get firstTokenMs(): number | undefined {
    const { grantedAt, firstTokenAt } = this;
    return grantedAt === undefined || firstTokenAt === undefined ? undefined : Math.round(firstTokenAt - grantedAt);
  }

  /** Whether the first token arrived at least `ageMs` ago, milliseconds. */
  hasReceivedFor(ageMs: number): boolean {
    return this.firstTokenAt !== undefined && performance.now() - this.firstTokenAt >= ageMs;
  }

  grant(): void {
    this.grantedAt ??= performance.now();
  }

  start(server: CalledServer): void {
    this.calls += 1;
    this.server = server;
  }

  /** Records that tokens, or a piece of an answer, have arrived. */
  receive(): void {
    this.firstTokenAt ??= performance.now();
  }

  /** Records that the response starts again without tokens. */
  restart(): void {
    this.clears += 1;
  }

  /** Takes the server of a response that another replica has generated. */
  restore({ serverId, model }: CalledServer): void {
    this.server = { serverId, model };
  }
}
