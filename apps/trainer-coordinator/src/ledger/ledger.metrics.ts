import { Injectable } from '@nestjs/common';
import {
  decodeId,
  LEDGER_BOUNDS,
  WASTE_REASONS,
  type JobId,
  type JobLedgerReply,
  type LedgerSummary,
  type PoolName,
} from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';
import type { Gauge } from 'prom-client';
import { CoordinatorConfig } from '../coordinator.config';

const LEVELS = { near: 1, over: 2 };
/** Label of all jobs beyond `METRICS_JOBS`. */
const OTHER_JOBS = 'other';

type JobLedger = JobLedgerReply & { job: JobId };

/** Gauges of the ledgers. They are read from Redis periodically, so every replica shows the same values. */
@Injectable()
export class LedgerMetrics {
  private readonly values;
  private readonly ofPool;
  private readonly waste;
  private readonly alarms;
  /** Functions that remove the series of a pool. */
  private readonly shown = new Map<PoolName, (() => void)[]>();

  constructor(
    metrics: Metrics,
    private readonly config: CoordinatorConfig,
  ) {
    const labels = ['pool', 'training_job'];
    const gauge = (name: string, help: string) => metrics.readGauge(`ledger_${name}`, help, labels);
    this.values = {
      lengthBias: gauge('length_bias_ratio', 'Mean length of trained samples / of all started samples; 1 = unbiased'),
      offPolicy: gauge('off_policy_ratio', 'Share of trained tokens generated with older weights'),
      waste: gauge('waste_ratio', 'Share of tokens that were thrown away'),
      variation: gauge('batch_variation_ratio', 'Standard deviation / mean of the mean lengths of the steps'),
      span: gauge('version_span', 'Maximum weight versions between a token and its training'),
      cuts: gauge('cuts_per_group', 'Maximum cuts of a trained group'),
    };
    const gaugeOfPool = (name: string, help: string) => metrics.readGauge(`pool_ledger_${name}`, help, ['pool']);
    this.ofPool = {
      lengthBias: gaugeOfPool('length_bias_ratio', 'As ledger_length_bias_ratio, of all samples of the pool together'),
      offPolicy: gaugeOfPool('off_policy_ratio', 'As ledger_off_policy_ratio, of all tokens of the pool together'),
      waste: gaugeOfPool('waste_ratio', 'As ledger_waste_ratio, of all tokens of the pool together'),
    };
    this.waste = metrics.readGauge(
      'ledger_wasted_tokens',
      'Tokens thrown away, by reason; training_job="other": of the jobs beyond METRICS_JOBS',
      [...labels, 'reason'],
    );
    this.alarms = metrics.readGauge(
      'ledger_alarms',
      'Bounds that are nearly reached (1) or exceeded (2), otherwise 0; training_job="other": of the jobs beyond ' +
        'METRICS_JOBS',
      [...labels, 'bound'],
    );
  }

  hide(pool: PoolName): void {
    for (const remove of this.shown.get(pool) ?? []) remove();
    this.shown.delete(pool);
  }

  /**
   * Replaces the series of a pool.
   * @param all summary of all jobs of the pool together
   * @param jobs the latest change first. All jobs beyond `METRICS_JOBS` share one label, with sums of tokens and the
   *   highest level of each bound
   */
  show(pool: PoolName, all: LedgerSummary, jobs: readonly JobLedger[]): void {
    this.hide(pool);
    const shown: (() => void)[] = [];
    this.shown.set(pool, shown);
    const set = (gauge: Gauge, labels: Record<string, string>, value: number): void => {
      gauge.set(labels, value);
      shown.push(() => gauge.remove(labels));
    };
    set(this.ofPool.lengthBias, { pool }, all.lengthBias);
    set(this.ofPool.offPolicy, { pool }, all.offPolicyShare);
    set(this.ofPool.waste, { pool }, all.waste.share);
    const { metricsJobs } = this.config;
    for (const { job, summary, alarms } of jobs.slice(0, metricsJobs)) {
      // The label is the name of the job as its trainer chose it.
      const labels = { pool, training_job: decodeId(job) };
      set(this.values.lengthBias, labels, summary.lengthBias);
      set(this.values.offPolicy, labels, summary.offPolicyShare);
      set(this.values.waste, labels, summary.waste.share);
      set(this.values.variation, labels, summary.batchVariation);
      set(this.values.span, labels, summary.versionSpan.max);
      set(this.values.cuts, labels, summary.cutsPerGroup.max);
      for (const reason of WASTE_REASONS) set(this.waste, { ...labels, reason }, summary.waste.byReason[reason] ?? 0);
      for (const bound of LEDGER_BOUNDS) set(this.alarms, { ...labels, bound }, getAlarmLevel(alarms, bound));
    }
    const others = jobs.slice(metricsJobs);
    if (others.length === 0) return;
    const labels = { pool, training_job: OTHER_JOBS };
    for (const reason of WASTE_REASONS) {
      const tokens = others.map(({ summary }) => summary.waste.byReason[reason] ?? 0);
      set(
        this.waste,
        { ...labels, reason },
        tokens.reduce((sum, one) => sum + one, 0),
      );
    }
    for (const bound of LEDGER_BOUNDS) {
      const level = others.reduce((highest, { alarms }) => Math.max(highest, getAlarmLevel(alarms, bound)), 0);
      set(this.alarms, { ...labels, bound }, level);
    }
  }
}

function getAlarmLevel(alarms: JobLedger['alarms'], bound: (typeof LEDGER_BOUNDS)[number]): number {
  const alarm = alarms.find((one) => one.bound === bound);
  return alarm === undefined ? 0 : LEVELS[alarm.state];
}
