import { setTimeout as delay } from 'node:timers/promises';
import { BroomwagonError } from '@broomwagon/contracts';

/** Time to repeat calls, in which ended engines are restarted. */
const UNREACHABLE_DEADLINE_MS = 30_000;
const RETRY_PAUSE_MS = 250;

/** Times of all engines together, since their start or the last reset. */
export interface SimulatorState {
  /** Simulated time in which engines had work, summed over the engines, seconds. */
  busySeconds: number;
  /** Simulated time in which each engine had work, seconds. */
  busyOfEngine: number[];
  /** Simulated time that passed, summed over the engines, seconds. */
  simulatedSeconds: number;
  /** Share by which the clock that lags most fell behind while its engine was busy. */
  clockLagShare: number;
}

/** Client of the simulated engines' own routes, which are not part of any engine's protocol. */
export class SimulatorClient {
  constructor(private readonly urls: readonly string[]) {}

  /** @throws BroomwagonError ENGINE_UNREACHABLE or ENGINE_PROTOCOL */
  async state(): Promise<SimulatorState> {
    const states = (await Promise.all(
      this.urls.map((url) => this.ask(`${url}/simulator/state`)),
    )) as Partial<SimulatorState>[];
    const numbers = (field: Exclude<keyof SimulatorState, 'busyOfEngine'>): number[] =>
      states.map((state) => {
        const value = state[field];
        if (typeof value === 'number') return value;
        throw new BroomwagonError('ENGINE_PROTOCOL', `/simulator/state of an engine lacks ${field}`);
      });
    const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);
    const busyOfEngine = numbers('busySeconds');
    return {
      busySeconds: sum(busyOfEngine),
      busyOfEngine,
      simulatedSeconds: sum(numbers('simulatedSeconds')),
      clockLagShare: Math.max(...numbers('clockLagShare')),
    };
  }

  /** Ends all requests and resets all counts, so that the same prompts get the same lengths again. */
  async reset(): Promise<void> {
    await Promise.all(this.urls.map((url) => this.ask(`${url}/simulator/reset`, { method: 'POST', body: '{}' })));
  }

  private async ask(url: string, init?: { method: 'POST'; body: string }): Promise<unknown> {
    const response = await this.fetch(url, init);
    const text = await response.text();
    if (!response.ok) {
      throw new BroomwagonError('ENGINE_PROTOCOL', `${url} answers ${response.status}: ${text}`);
    }
    return text === '' ? {} : JSON.parse(text);
  }

  private async fetch(url: string, init?: { method: 'POST'; body: string }): Promise<Response> {
    for (const endsMs = performance.now() + UNREACHABLE_DEADLINE_MS; ;) {
      try {
        return await fetch(url, { ...init, signal: AbortSignal.timeout(10_000) });
      } catch (cause) {
        if (performance.now() >= endsMs) {
          throw new BroomwagonError('ENGINE_UNREACHABLE', `${url} does not answer`, { cause });
        }
        await delay(RETRY_PAUSE_MS);
      }
    }
  }
}
