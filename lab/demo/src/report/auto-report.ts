import type { AutoRow, RoundStatus } from '@broomwagon/contracts';
import { percent } from './arithmetic';
import type { AutoReport } from './report';

/** Collects the choices of the rounds of one job from their statuses. */
export class AutoChoices {
  private readonly byStep = new Map<number, NonNullable<RoundStatus['choice']>>();

  add({ step, choice }: Pick<RoundStatus, 'step' | 'choice'>): void {
    if (choice?.auto !== undefined) this.byStep.set(step, choice);
  }

  /** Returns the report; null if `auto` chose no round. */
  report(): AutoReport | null {
    const chosen = [...this.byStep].sort(([one], [other]) => one - other);
    if (chosen.length === 0) return null;
    const choices = chosen.map(([step, { overProvision, auto }]) => {
      const { policy, reason, broken } = auto!;
      return { step, policy, overProvision, reason, broken };
    });
    return { choices, frontier: chosen.at(-1)![1].auto!.frontier };
  }
}

const BROKEN = {
  measured: 'It went back by a step, down to wait, as the ledger broke a bound (raise one that stays broken)',
  predicted: 'It chose another policy, as the one before was predicted to break a bound',
};

/**
 * Text about the choices of `auto`, their reasons, the broken bounds, and the last predictions that no other beats in
 * speed and in old tokens.
 */
export function autoText({ choices, frontier }: AutoReport): string[] {
  const chosen = bySteps(choices, (one) => `${formatPolicyName(one.policy, one.overProvision)} (${one.reason})`);
  const lines = [`auto chose: ${chosen.join(', ')}`];
  for (const by of ['measured', 'predicted'] as const) {
    const broken = bySteps(choices, (one) => one.broken?.[by]?.join(' and '));
    if (broken.length > 0) lines.push(`${BROKEN[by]}: ${broken.join(', ')}`);
  }
  if (frontier.length === 0) return lines;
  lines.push('It predicted, as speed over wait, old tokens and version span (* breaks a bound):');
  for (const { policy, overProvision, speed, offPolicyShare, versionSpan, breaks } of frontier.filter(isBeatenByNone)) {
    const costs = `off-policy ${percent(offPolicyShare)}, span ${versionSpan}`;
    const broken = breaks.length === 0 ? '' : ` * ${breaks.join(', ')}`;
    lines.push(`  ${formatPolicyName(policy, overProvision).padEnd(18)} ${speed.toFixed(2)}x, ${costs}${broken}`);
  }
  return lines;
}

type Choice = AutoReport['choices'][number];

/** Writes one text per series of consecutive steps with the same value; steps without a value are left out. */
function bySteps(choices: readonly Choice[], whatOf: (choice: Choice) => string | undefined): string[] {
  const runs: { from: number; to: number; what: string | undefined }[] = [];
  for (const choice of choices) {
    const what = whatOf(choice);
    const before = runs.at(-1);
    if (before !== undefined && before.what === what) before.to = choice.step;
    else runs.push({ from: choice.step, to: choice.step, what });
  }
  return runs
    .filter(({ what }) => what !== undefined)
    .map(({ from, to, what }) => `${from === to ? `step ${from}` : `steps ${from} to ${to}`} ${what}`);
}

function isBeatenByNone(row: AutoRow, _: number, rows: readonly AutoRow[]): boolean {
  return !rows.some(
    (other) =>
      other.speed >= row.speed &&
      other.offPolicyShare <= row.offPolicyShare &&
      (other.speed > row.speed || other.offPolicyShare < row.offPolicyShare),
  );
}

function formatPolicyName(policy: string, overProvision: number): string {
  return policy === 'wait' ? policy : `${policy} ${overProvision}`;
}
