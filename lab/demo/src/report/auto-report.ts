import type { AutoRow, RoundStatus } from '@broomwagon/contracts';
import { percent } from './arithmetic';
import type { AutoReport } from './report';

/** Collects the choices of the rounds of one job from their statuses. */
export class AutoChoices {
  private readonly byStep = new Map<number, NonNullable<RoundStatus['choice']>>();

  add({ step, choice }: Pick<RoundStatus, 'step' | 'choice'>): void {
    if (choice?.auto !== undefined) this.byStep.set(step, choice);
  }

  /** Null if no round was chosen by `auto`. */
  report(): AutoReport | null {
    const chosen = [...this.byStep].sort(([one], [other]) => one - other);
    if (chosen.length === 0) return null;
    const choices = chosen.map(([step, { overProvision, auto }]) => {
      const { policy, reason } = auto!;
      return { step, policy, overProvision, reason };
    });
    return { choices, frontier: chosen.at(-1)![1].auto!.frontier };
  }
}

/** What it chose and why, and of the last predictions those that no other beats in speed and in old tokens. */
export function autoText({ choices, frontier }: AutoReport): string[] {
  const runs: { from: number; to: number; what: string }[] = [];
  for (const { step, policy, overProvision, reason } of choices) {
    const what = `${nameOf(policy, overProvision)} (${reason})`;
    const before = runs.at(-1);
    if (before?.what === what) before.to = step;
    else runs.push({ from: step, to: step, what });
  }
  const chosen = runs.map(({ from, to, what }) => `${from === to ? `step ${from}` : `steps ${from} to ${to}`} ${what}`);
  const lines = [`auto chose: ${chosen.join(', ')}`];
  if (frontier.length === 0) return lines;
  lines.push('It predicted, as speed over wait, old tokens and version span (* breaks a bound):');
  for (const { policy, overProvision, speed, offPolicyShare, versionSpan, breaks } of frontier.filter(isBeatenByNone)) {
    const costs = `off-policy ${percent(offPolicyShare)}, span ${versionSpan}`;
    const broken = breaks.length === 0 ? '' : ` * ${breaks.join(', ')}`;
    lines.push(`  ${nameOf(policy, overProvision).padEnd(18)} ${speed.toFixed(2)}x, ${costs}${broken}`);
  }
  return lines;
}

function isBeatenByNone(row: AutoRow, _: number, rows: readonly AutoRow[]): boolean {
  return !rows.some(
    (other) =>
      other.speed >= row.speed &&
      other.offPolicyShare <= row.offPolicyShare &&
      (other.speed > row.speed || other.offPolicyShare < row.offPolicyShare),
  );
}

function nameOf(policy: string, overProvision: number): string {
  return policy === 'wait' ? policy : `${policy} ${overProvision}`;
}
