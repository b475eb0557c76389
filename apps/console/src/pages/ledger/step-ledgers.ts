import { type AdminClient, readData, type Schemas } from '@broomwagon/admin-client';
import { count, percent } from '../../components/format';

export interface Step {
  step: number;
  /** Time from the opening of the round to its last group. */
  seconds: number;
  ledger: Schemas['LedgerSummary'];
  /** Mean length of trained samples / mean length of all samples, over all steps up to this step. */
  biasSoFar: number;
}

/** Formats a value of a bound: cuts and weight versions as numbers, all other bounds as shares. */
export function boundText(bound: Schemas['LedgerAlarm']['bound'], value: number): string {
  return bound === 'cutsPerGroup' || bound === 'versionSpan' ? count(value) : percent(value, 1);
}

/** Reads the ledgers of the last rounds of jobs. The ledger of a closed round is read once, since it stays the same. */
export class StepLedgers {
  private readonly closed = new Map<string, Schemas['JobLedgerReply']>();

  constructor(
    private readonly client: AdminClient,
    private readonly pool: string,
  ) {}

  /** The completed steps of a job, in order. */
  async read(job: string, signal: AbortSignal): Promise<Step[]> {
    const params = { path: { pool: this.pool, job } };
    const { rounds } = await readData(this.client.GET('/api/v1/pools/{pool}/jobs/{job}/rounds', { params, signal }));
    const completed = rounds.filter(({ completedAtMs, state }) => completedAtMs !== undefined && state !== 'cancelled');
    const steps: Step[] = [];
    for (const round of completed.toReversed()) {
      const seconds = (round.completedAtMs! - round.openedAtMs) / 1_000;
      const { summary: ledger, lengthBiasSoFar } = await this.ledger(job, round, signal);
      steps.push({ step: round.step, seconds, ledger, biasSoFar: lengthBiasSoFar! });
    }
    return steps;
  }

  private async ledger(job: string, { roundId, state }: Schemas['RoundSummary'], signal: AbortSignal) {
    const key = `${job}/${roundId}`;
    const known = this.closed.get(key);
    if (known !== undefined) return known;
    const params = { path: { pool: this.pool, job, roundId } };
    const ledger = await readData(
      this.client.GET('/api/v1/pools/{pool}/jobs/{job}/rounds/{roundId}/ledger', { params, signal }),
    );
    if (state === 'closed') this.closed.set(key, ledger);
    return ledger;
  }
}
