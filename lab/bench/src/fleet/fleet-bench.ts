import { Progress } from '../progress';
import type { Stage } from '../stage';
import { SAVED_TOKENS } from './fleet-costs';
import { FleetSystem } from './fleet-system';
import { FleetResults } from './fleet-results';
import { formatReport } from './fleet-report';
import { type Effort, HALF_LOAD, type Held, type Holder, LONG_TOKENS, Phases } from './phases';

const FULL: Effort = {
  rounds: 3,
  engines: 100,
  holdMs: 10_000,
  settleMs: 3_000,
  collectMs: 1_000,
  requests: { 1: 800, 64: 6_000 },
  shortRounds: 16,
  shortGroups: 16,
  saveMs: 30_000,
  saveIntervalMs: 1_000,
  savedRequests: 192,
  savedTokens: LONG_TOKENS,
};
const QUICK: Effort = {
  rounds: 1,
  engines: 2,
  holdMs: 500,
  settleMs: 100,
  collectMs: 50,
  requests: { 1: 64, 64: 128 },
  shortRounds: 2,
  shortGroups: 4,
  saveMs: 500,
  saveIntervalMs: 250,
  savedRequests: 16,
  savedTokens: 1_000,
};
const IDLE_MS = 5_000;
const QUICK_IDLE_MS = 1_000;
/** Intervals that are measured beside each other, events of so many tokens. */
export const INTERVALS = [1, 64] as const;
/** Tokens of a request between two saves of production: 15 s at 30 tokens a second. */
const TOKENS_PER_SAVE = 450;
const HOLDERS: Holder[] = ['worker', 'gateway'];

/** `bench fleet`: the cost of a token, a save and a response for each process of a fleet. */
export async function benchFleet(stage: Stage, isQuick: boolean): Promise<{ report: object; text: string }> {
  const effort = isQuick ? QUICK : FULL;
  await stage.start((line) => console.error(line));
  const system = await FleetSystem.start(stage, effort.engines, effort.saveIntervalMs);
  const phases = new Phases(system, effort);
  const results = new FleetResults(effort.engines);
  const progress = new Progress(2 + 8 * effort.rounds);
  try {
    progress.step('warming up');
    await phases.shortRounds(INTERVALS[1]);
    await phases.shortCalls([system.gatewayUrl], INTERVALS[1]);
    results.idle = await system.processes.measureIdle(isQuick ? QUICK_IDLE_MS : IDLE_MS);
    const wanted = new Map<string, number>();
    for (let round = 0; round < effort.rounds; round++) {
      for (const holder of HOLDERS) {
        for (const interval of INTERVALS) {
          progress.step(`round ${round + 1}: a ${holder} with events of ${interval}`);
          const name = `${holder} ${interval}`;
          const held = await phases.hold(holder, interval, wanted.get(name) ?? effort.requests[interval]!);
          wanted.set(name, toHalfLoad(held));
          results.held.push(held);
        }
      }
      progress.step(`round ${round + 1}: short responses`);
      results.add('worker', await phases.shortRounds(INTERVALS[1]));
      results.add('gateway', await phases.shortCalls([system.gatewayUrl], INTERVALS[1]));
      progress.step(`round ${round + 1}: direct calls`);
      results.add('undici', await phases.shortCalls(system.engineUrls, INTERVALS[1]));
      const python = await phases.pythonCalls();
      if (python !== undefined) results.addPython(python);
      progress.step(`round ${round + 1}: saves`);
      // Saves come at the interval of the workers, so requests that are twice as fast have saves of twice the tokens.
      const perSecond = effort.savedRequests * (1_000 / effort.saveIntervalMs);
      for (const size of ['large', 'small'] as const) {
        const tokens = (SAVED_TOKENS[size] * 1_000) / effort.saveIntervalMs;
        const [saved, unsaved] = [await phases.saves('saved', tokens), await phases.saves('unsaved', tokens)];
        results.addSaves(size, saved, unsaved, perSecond);
      }
    }
    progress.step('bytes of saves');
    results.bytes = await phases.savedBytes(TOKENS_PER_SAVE);
  } finally {
    progress.end();
  }
  const report = results.report();
  return { report, text: formatReport(report) };
}

/** Requests with which the holder would use half of a core. A round changes them by a factor of three at most. */
function toHalfLoad({ requests, busyShare }: Held): number {
  return Math.round(requests * Math.min(3, Math.max(1 / 3, HALF_LOAD / busyShare)));
}
