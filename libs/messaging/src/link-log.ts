import { Logger } from '@nestjs/common';
import { BroomwagonError, outages } from '@broomwagon/contracts';
import { connect } from 'nats';
import {
  canCredentialsChange,
  connectionOptions,
  isCredentialsRefusal,
  refusalAdvice,
  withoutCredentials,
  type NatsConfig,
} from './nats-options';

/** Time after a loss until the first explanation, milliseconds. Most outages are shorter. */
const FIRST_EXPLANATION_MS = 3_000;
/** Time that a dial for an explanation may take, milliseconds. */
const DIAL_TIMEOUT_MS = 10_000;
/** Consecutive explanations with refused credentials of the environment after which the process should end. */
const MAX_REFUSED = 3;

/**
 * The outages of one link to NATS. Logs once in an outage why NATS refuses the link, if an operator has to change
 * something. An explanation dials once itself, because nats.js does not report why its dials fail.
 */
export class LinkLog {
  private readonly logger = new Logger('Nats');
  private readonly name: string;
  private readonly everyMs: number;
  private lostAtMs: number | undefined;
  private cause: string | undefined;
  private answer: Error | undefined;
  private dialed: { address: string; isAnnounced: boolean } | undefined;
  private readonly unreachable = new Set<string>();
  private timer: NodeJS.Timeout | undefined;
  private refused = 0;
  private resolveNeedsRestart!: (error: BroomwagonError) => void;
  /** Why NATS refuses the link at present, with the setting to change; undefined while no refusal is known. */
  refusal: string | undefined;
  /** Resolves, with the reason, when NATS keeps refusing credentials that only a restart can replace. */
  readonly needsRestart = new Promise<BroomwagonError>((resolve) => (this.resolveNeedsRestart = resolve));

  constructor(private readonly config: NatsConfig) {
    this.name = `NATS at ${withoutCredentials(config.url)}`;
    this.everyMs = config.explainEveryMs ?? 60_000;
  }

  /** Notes an error that NATS has sent: the cause of the next loss, or the answer to a dial after a loss. */
  noteError(error: Error): void {
    this.cause ??= `NATS ended it: ${error.message}`;
    this.answer = error;
  }

  /** Notes that pings were not answered. An earlier error of NATS stays the cause. */
  noteSilence(): void {
    this.cause ??= 'it did not answer pings';
  }

  /**
   * Notes that an address is dialed now, so the previous dial has failed.
   * @param isAnnounced servers of the cluster have announced the address, and NATS_URL does not name it
   */
  noteDial(address: string, isAnnounced: boolean): void {
    if (this.dialed?.isAnnounced) this.unreachable.add(this.dialed.address);
    this.dialed = { address, isAnnounced };
  }

  /** Notes the loss of the link. @param server address of the server to which the link was */
  begin(server: string): void {
    if (this.lostAtMs !== undefined) return;
    this.lostAtMs = performance.now();
    const cause = this.cause ?? 'the server or the network closed the connection';
    outages.begin({ name: this.name, ids: { server } }, cause, this);
    this.explainLater(Math.min(FIRST_EXPLANATION_MS, this.everyMs));
  }

  /** Notes that the link is up again. */
  end(): void {
    if (this.lostAtMs === undefined) return;
    outages.end(this.name, this);
    if (this.unreachable.size > 0) {
      this.logger.warn(
        `${this.name} announces addresses that did not answer: ${[...this.unreachable].join(', ')}; if ` +
          'this process can never reach them, set NATS_IGNORE_CLUSTER_UPDATES to true, so that no dial waits for them',
      );
    }
    this.stop();
  }

  /** Ends the explanations, because the link is up or closed for good. */
  stop(): void {
    clearTimeout(this.timer);
    outages.forget(this.name, this);
    this.timer = undefined;
    this.lostAtMs = undefined;
    this.cause = undefined;
    this.answer = undefined;
    this.dialed = undefined;
    this.unreachable.clear();
    this.refusal = undefined;
    this.refused = 0;
  }

  private explainLater(inMs: number): void {
    this.timer = setTimeout(() => void this.explain(), inMs).unref();
  }

  private async explain(): Promise<void> {
    const lostAtMs = this.lostAtMs;
    const error = await this.dial();
    if (lostAtMs === undefined || this.lostAtMs !== lostAtMs) return;
    const refusal = error && (refusalAdvice(error) ?? explainAnswer(this.answer));
    const before = this.refusal;
    this.refusal = refusal === undefined ? undefined : `${this.name}: ${refusal}`;
    if (this.refusal !== undefined && this.refusal !== before) this.logger.error(this.refusal);
    this.refused = error && isCredentialsRefusal(error) ? this.refused + 1 : 0;
    if (this.refused >= MAX_REFUSED && !canCredentialsChange(this.config)) {
      this.resolveNeedsRestart(new BroomwagonError('UNAVAILABLE', this.refusal!));
    }
    this.explainLater(this.everyMs);
  }

  /** Dials once. @returns why the dial failed; undefined for success */
  private async dial(): Promise<Error | undefined> {
    try {
      const nats = await connect({ ...connectionOptions(this.config), reconnect: false, timeout: DIAL_TIMEOUT_MS });
      await nats.close();
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }
}

/**
 * Explains an error that NATS has sent. nats.js reports only a time-out when a server refuses a dial for another reason
 * than credentials.
 */
function explainAnswer(answer: Error | undefined): string | undefined {
  return answer && (refusalAdvice(answer) ?? `it refuses the connection (${answer.message})`);
}
