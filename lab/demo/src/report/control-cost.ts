import type { LedgerSummary } from '@broomwagon/contracts';
import type { CpuSeconds } from '../system/cpu-meter';

/** CPU time of all processes but the engines over a run, for the responses and tokens that it has carried. */
export interface ControlCost {
  cpuSeconds: number;
  /** By program; a NATS or a Redis that was given to the run is not counted. */
  byProgram: CpuSeconds;
  /** Trained samples, and tokens that engines have generated for the run, tokens that were thrown away included. */
  responses: number;
  tokens: number;
}

/** Computes what the control plane has cost; null where CPU time is unknown. */
export function buildControlCost(
  byProgram: CpuSeconds | null,
  { trained, waste }: Pick<LedgerSummary, 'trained' | 'waste'>,
): ControlCost | null {
  if (byProgram === null) return null;
  return {
    cpuSeconds: Object.values(byProgram).reduce((sum, seconds) => sum + seconds, 0),
    byProgram,
    responses: trained.samples,
    tokens: Math.round(trained.samples * trained.meanTokens) + waste.tokens,
  };
}

/** A line for the screen. @param wallSeconds duration of the run */
export function controlText({ cpuSeconds, byProgram, responses, tokens }: ControlCost, wallSeconds: number): string {
  const programs = Object.entries(byProgram).sort(([, one], [, other]) => other - one);
  const each = programs.map(([name, seconds]) => `${name} ${seconds.toFixed(1)}`).join(', ');
  const share = (count: number, factor: number): string =>
    count === 0 ? 'n/a' : ((cpuSeconds * factor) / count).toFixed(1);
  return (
    `Control plane: ${cpuSeconds.toFixed(1)} CPU s, ${(cpuSeconds / wallSeconds).toFixed(2)} cores (${each}); ` +
    `${share(responses, 1e3)} ms a response, ${share(tokens, 1e6)} us a token`
  );
}
