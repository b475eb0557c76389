import { Injectable } from '@nestjs/common';
import { decodeId, WASTE_REASONS, type JobId, type JobLedgerReply, type PoolName } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';

const BOUNDS = ['lengthBias', 'offPolicyShare', 'versionSpan', 'cutsPerGroup'] as const;

/** Gauges of the ledgers, read periodically, so every replica shows the same. */
@Injectable()
export class LedgerMetrics {
  private readonly values;
  private readonly waste;
  private readonly alarms;

  constructor(metrics: Metrics) {
    const labels = ['pool', 'job'];
    const gauge = (name: string, help: string) => metrics.gauge(`ledger_${name}`, help, labels);
    this.values = {
      lengthBias: gauge('length_bias_ratio', 'Mean length of trained samples / of all started samples; 1 = unbiased'),
      offPolicy: gauge('off_policy_ratio', 'Share of trained tokens generated with older weights'),
      waste: gauge('waste_ratio', 'Share of tokens that were thrown away'),
      variation: gauge('batch_variation_ratio', 'Standard deviation / mean of the mean lengths of the steps'),
      span: gauge('version_span', 'Maximum weight versions between a token and its training'),
      cuts: gauge('cuts_per_group', 'Maximum cuts of a trained group'),
    };
    this.waste = metrics.gauge('ledger_wasted_tokens', 'Tokens thrown away, by reason', [...labels, 'reason']);
    this.alarms = metrics.gauge('ledger_alarms', 'Bounds that are nearly reached (1) or exceeded (2), otherwise 0', [
      ...labels,
      'bound',
    ]);
  }

  /** The job is deleted, or has been idle for long. */
  forget(pool: PoolName, job: JobId): void {
    const labels = labelsOf(pool, job);
    for (const gauge of Object.values(this.values)) gauge.remove(labels);
    for (const reason of WASTE_REASONS) this.waste.remove({ ...labels, reason });
    for (const bound of BOUNDS) this.alarms.remove({ ...labels, bound });
  }

  show(pool: PoolName, job: JobId, { summary, alarms }: JobLedgerReply): void {
    const labels = labelsOf(pool, job);
    const { values } = this;
    values.lengthBias.set(labels, summary.lengthBias);
    values.offPolicy.set(labels, summary.offPolicyShare);
    values.waste.set(labels, summary.waste.share);
    values.variation.set(labels, summary.batchVariation);
    values.span.set(labels, summary.versionSpan.max);
    values.cuts.set(labels, summary.cutsPerGroup.max);
    for (const [reason, tokens] of Object.entries(summary.waste.byReason))
      this.waste.set({ ...labels, reason }, tokens);
    for (const bound of BOUNDS) {
      const alarm = alarms.find((one) => one.bound === bound);
      this.alarms.set({ ...labels, bound }, alarm === undefined ? 0 : alarm.state === 'near' ? 1 : 2);
    }
  }
}

/** With the job's name as its trainer chose it. */
function labelsOf(pool: PoolName, job: JobId) {
  return { pool, job: decodeId(job) };
}
