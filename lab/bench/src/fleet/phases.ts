import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { SAVED_TOKENS } from './fleet-costs';
import { maxConnections, POOLS, type FleetSystem } from './fleet-system';
import { perPart, type PerPart, readMemory, type Usage } from './processes';
import type { RoundShape } from './trainer.main';

export type Holder = 'worker' | 'gateway';

/** Duration of each measurement, milliseconds, and sizes. */
export interface Effort {
  rounds: number;
  engines: number;
  holdMs: number;
  /** Pause before a measurement of requests in flight. */
  settleMs: number;
  /** Time for a collection of garbage. */
  collectMs: number;
  /** Requests in flight of the first round, by interval. */
  requests: Record<number, number>;
  /** Rounds and groups of 16 samples of a measurement of short responses. */
  shortRounds: number;
  shortGroups: number;
  saveMs: number;
  /** Interval of partial saves in the phase of saves. */
  saveIntervalMs: number;
  savedRequests: number;
  /** Length of the responses whose stored bytes are counted. */
  savedTokens: number;
}

/** Share of a core that a holder uses while its requests in flight are counted. */
export const HALF_LOAD = 0.5;
export const TOKENS_PER_SECOND = 30;
export const SHORT_TOKENS = 16;
export const LONG_TOKENS = 8_000;
/** Time for which a request of the phase of saves streams beside the measurement: a busy machine opens requests slowly. */
const SAVE_SPARE_SECONDS = 240;
const SAMPLES = 16;
const PYTHON_PROGRAM = 'lab/bench/direct_client.py';
const PROMPT_TOKEN_IDS = [11, 12, 13, 14, 15, 16, 17, 18];

function completion(maxTokens: number, streamInterval: number): string {
  const fields = { logprobs: 1, return_token_ids: true, stream_interval: streamInterval };
  return JSON.stringify({ model: 'bench', prompt: PROMPT_TOKEN_IDS, max_tokens: maxTokens, ...fields });
}

/** Requests that a holder carries, and their cost. */
export interface Held {
  holder: Holder;
  interval: number;
  requests: number;
  /** Share of a core that the holder used, without the other processes. */
  busyShare: number;
  /** Tokens that the engines sent over tokens that were due. */
  pace: number;
  tokens: number;
  events: number;
  usage: Usage;
  bytesPerRequest: number;
}

/** Runs the phases of `bench fleet` on its processes. */
export class Phases {
  constructor(
    private readonly system: FleetSystem,
    private readonly effort: Effort,
  ) {}

  /** Keeps requests of 8,000 tokens in flight, and measures while all of them stream. */
  async hold(holder: Holder, interval: number, wanted: number): Promise<Held> {
    const { processes, engine } = this.system;
    // Each request of a gateway has a connection to its client, too.
    const room = holder === 'worker' ? maxConnections() : Math.floor(maxConnections() / 2);
    const requests = SAMPLES * Math.max(1, Math.floor(Math.min(wanted, room) / SAMPLES));
    await engine.ask({ kind: 'pace', tokensPerSecond: TOKENS_PER_SECOND });
    const bytesBefore = await readMemory(processes.get(holder), this.effort.collectMs);
    await this.open(holder, interval, requests);
    await this.system.untilStreams(requests);
    await delay(this.effort.settleMs);
    const before = await engine.ask({ kind: 'counts' });
    const cpuBefore = processes.readCpuSeconds(holder);
    const usage = await processes.measure(async () => {
      await delay(this.effort.holdMs);
      // On a busy machine the first event may be late, and a fast one may use less than the unit of CPU time.
      const isIdle = async (): Promise<boolean> =>
        processes.readCpuSeconds(holder) === cpuBefore ||
        (await engine.ask({ kind: 'counts' })).tokens === before.tokens;
      while (await isIdle()) await delay(this.effort.settleMs);
    });
    const after = await engine.ask({ kind: 'counts' });
    if (after.streams !== requests) throw new Error(`${requests - after.streams} of ${requests} requests have ended`);
    const bytesPerRequest = ((await readMemory(processes.get(holder), this.effort.collectMs)) - bytesBefore) / requests;
    await this.close(holder, interval);
    const tokens = after.tokens - before.tokens;
    return {
      holder,
      interval,
      requests,
      usage,
      bytesPerRequest,
      tokens,
      events: after.events - before.events,
      busyShare: usage.cpuSeconds[holder] / usage.seconds,
      pace: tokens / (requests * TOKENS_PER_SECOND * usage.seconds),
    };
  }

  /** CPU seconds of each part for one short response of a round. */
  async shortRounds(interval: number): Promise<PerPart> {
    const { shortRounds: rounds, shortGroups: groups } = this.effort;
    const { trainer, engine, processes } = this.system;
    await engine.ask({ kind: 'pace', tokensPerSecond: TOKENS_PER_SECOND });
    const shape = this.shape(`short-${interval}`, interval, groups, SHORT_TOKENS);
    let samples = 0;
    const usage = await processes.measure(async () => {
      ({ samples } = await trainer.ask({ kind: 'train', rounds, ...shape }));
    });
    if (samples !== rounds * groups * SAMPLES) throw new Error(`Only ${samples} samples were read`);
    return each(processes.busy(usage), samples);
  }

  /** CPU seconds of each part for one short call that is not streamed: to the gateway, or to the engines. */
  async shortCalls(urls: string[], interval: number): Promise<PerPart> {
    const { client, engine, processes } = this.system;
    await engine.ask({ kind: 'pace', tokensPerSecond: TOKENS_PER_SECOND });
    const { count, inFlight, body } = this.shortLoad(interval);
    const usage = await processes.measure(() => client.ask({ kind: 'calls', urls, body, count, inFlight }));
    return each(processes.busy(usage), count);
  }

  /** CPU seconds of a client in Python for one short call to the engines. @returns undefined without aiohttp */
  async pythonCalls(): Promise<number | undefined> {
    const { count, inFlight, body } = this.shortLoad(1);
    const run = promisify(execFile);
    const python = process.env.PYTHON ?? 'python3';
    const hasLibrary = await run(python, ['-c', 'import aiohttp']).then(
      () => true,
      () => false,
    );
    if (!hasLibrary) return undefined;
    const load = ['--body', body, '--count', String(count), '--in-flight', String(inFlight)];
    const { stdout } = await run(python, [PYTHON_PROGRAM, ...load, ...this.system.engineUrls]);
    const { answered, cpuSeconds } = JSON.parse(stdout) as { answered: number; cpuSeconds: number };
    return cpuSeconds / answered;
  }

  /**
   * CPU seconds of each part in a second in which the requests are saved, or without saves.
   * @param tokens tokens of each request in a second
   */
  async saves(pool: 'saved' | 'unsaved', tokens: number): Promise<PerPart> {
    const { system, effort } = this;
    const { engine, trainer, processes } = system;
    await engine.ask({ kind: 'pace', tokensPerSecond: tokens });
    system.count(pool);
    const groups = effort.savedRequests / SAMPLES;
    const maxTokens = tokens * (SAVE_SPARE_SECONDS + effort.saveMs / 1_000);
    const job = `saves-${pool}`;
    const shape = { ...this.shape(job, SAVED_TOKENS.small, groups, maxTokens), pool: POOLS[pool] };
    await trainer.ask({ kind: 'open', ...shape });
    await system.untilStreams(effort.savedRequests);
    await delay(2 * effort.saveIntervalMs);
    const usage = await processes.measure(() => delay(effort.saveMs));
    await trainer.ask({ kind: 'cancel', pool: POOLS[pool], job });
    await this.untilEnded();
    system.count('fleet');
    return perPart((part) => usage.cpuSeconds[part] / usage.seconds);
  }

  /**
   * Bytes that the payload store receives for long responses: the bytes of as many saves as in production over the
   * bytes of the responses, and the bytes of a token without saves.
   */
  async savedBytes(tokensPerSave: number): Promise<{ savedOverMade: number; perToken: number }> {
    const { engine, trainer } = this.system;
    const store = async (pool: 'saved' | 'unsaved', tokensPerSecond: number): Promise<number> => {
      await engine.ask({ kind: 'pace', tokensPerSecond });
      const shape = { ...this.shape(`bytes-${pool}`, 64, 1, this.effort.savedTokens), pool: POOLS[pool] };
      const before = await this.system.storedBytes();
      await trainer.ask({ kind: 'train', rounds: 1, ...shape });
      return (await this.system.storedBytes()) - before;
    };
    const saved = await store('saved', (tokensPerSave * 1_000) / this.effort.saveIntervalMs);
    const made = await store('unsaved', 0);
    return { savedOverMade: (saved - made) / made, perToken: made / (SAMPLES * this.effort.savedTokens) };
  }

  private async open(holder: Holder, interval: number, requests: number): Promise<void> {
    const { trainer, client, gatewayUrl } = this.system;
    if (holder === 'gateway') {
      const body = completion(LONG_TOKENS, interval);
      await client.ask({ kind: 'hold', urls: [gatewayUrl], body, count: requests });
      return;
    }
    await trainer.ask({ kind: 'open', ...this.shape(`hold-${interval}`, interval, requests / SAMPLES, LONG_TOKENS) });
  }

  private async close(holder: Holder, interval: number): Promise<void> {
    if (holder === 'gateway') await this.system.client.ask({ kind: 'drop' });
    else await this.system.trainer.ask({ kind: 'cancel', pool: POOLS.fleet, job: `hold-${interval}` });
    await this.untilEnded();
  }

  private async untilEnded(): Promise<void> {
    await this.system.untilStreams(0);
    await this.system.processes.untilQuiet();
  }

  private shape(job: string, streamInterval: number, groups: number, maxTokens: number): RoundShape {
    const prompt = { promptTokenIds: PROMPT_TOKEN_IDS, engineFields: { stream_interval: streamInterval } };
    return { pool: POOLS.fleet, job, groups, samples: SAMPLES, maxTokens, prompt };
  }

  /** Returns the load of short calls: one call for each sample of the rounds, the samples of one round at a time. */
  private shortLoad(interval: number) {
    const { shortRounds, shortGroups } = this.effort;
    const inFlight = shortGroups * SAMPLES;
    return { count: shortRounds * inFlight, inFlight, body: completion(SHORT_TOKENS, interval) };
  }
}

function each(cpuSeconds: PerPart, count: number): PerPart {
  return perPart((part) => cpuSeconds[part] / count);
}
