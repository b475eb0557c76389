import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RequestCounts, RoundStatus, SamplingParameters } from '@broomwagon/contracts';
import { LENGTH_PRESETS, type LengthPresetName } from '@broomwagon/models';
import { runChecker } from './checker/run-checker';
import type { StepReport } from '../../reference-trainer/src/loop/step-report';
import { TrainerLoop } from '../../reference-trainer/src/loop/trainer-loop';
import type { EngineMeter } from '../../reference-trainer/src/loop/trainer-loop.types';
import { rebalanceSettings } from './options/rebalance-options';
import { type PlannedRun, planRuns } from './options/tail-options';
import type { TrainerOptions } from './options/trainer-options';
import { ProgressDisplay } from './progress/progress-display';
import { renderLost, renderMissing, renderReconciled, renderStep } from './progress/progress-view';
import { EXAMPLE_PROMPTS } from './prompts/data-set';
import type { EqualLengths } from './prompts/equal-lengths';
import type { PromptRecord } from '../../reference-trainer/src/prompts/prompt-record';
import { sumEngineSeconds, invalidities, computeSpeedup, computeTailShare } from './report/arithmetic';
import { AutoChoices } from './report/auto-report';
import { buildControlCost } from './report/control-cost';
import type { RebalanceReport, Report, RunReport, Totals } from './report/report';
import { ResultsFile } from '../../reference-trainer/src/results/results-file';
import { CpuMeter } from './system/cpu-meter';
import { LeaseIdleMeter, SimulatorIdleMeter } from './system/idle-meters';
import type { StartedSystem } from './system/rollout-system';

/** Token budget of a sample on real engines, which have no preset. */
const DEFAULT_MAX_TOKENS = 1_024;
const SERVER_POLL_MS = 250;

/** The data set, and the lengths of its samples, if these are to be the same in all runs on real engines. */
export interface RunPrompts {
  dataSet: readonly PromptRecord[];
  lengths?: EqualLengths;
}

/** Rolls out the data set under the chosen policy, then under those to compare with, and creates the report. */
export class ReferenceRun {
  private readonly dataSet: readonly PromptRecord[];
  private readonly lengths?: EqualLengths;
  private readonly jobBase: string;
  private servers: { serverId: string; inflight: number }[] = [];
  private serversReadMs = 0;
  /** Round on the display, and the time at which it was first shown. */
  private shown = { roundId: '', sinceMs: 0 };
  private clockLagShare: number | null = null;

  constructor(
    private readonly options: TrainerOptions,
    prompts: RunPrompts,
    private readonly system: StartedSystem,
    private readonly display: ProgressDisplay,
    /** Folder for files without an option. */
    private readonly folder: string,
    private readonly speed: number,
    private readonly signal: AbortSignal,
  ) {
    this.dataSet = prompts.dataSet;
    this.lengths = prompts.lengths;
    this.jobBase = options.job ?? `run-${randomBytes(4).toString('hex')}`;
  }

  async run(): Promise<Report> {
    const { options, dataSet, system } = this;
    const promptsFile = await this.promptsFile();
    const runs: RunReport[] = [];
    for (const planned of planRuns(options)) runs.push(await this.rollOut(planned, promptsFile));
    const [run, ...others] = runs as [RunReport, ...RunReport[]];
    const baseline = others.find(({ policy }) => policy === 'wait' || options.rebalance !== 'off') ?? null;
    const problems = invalidities(this.clockLagShare, runs, system.simulatorRestarts());
    const notes = [...problems];
    if (system.simulator === undefined) {
      notes.push('The idle share of real engines is an estimate: the share of time without requests in flight.');
      if (others.length > 0 && this.lengths === undefined) {
        notes.push('Responses had other lengths in each run: --lengths makes them equal (docs/gpu.md).');
      }
    }
    return {
      ...run,
      prompts: dataSet.length,
      groupsPerStep: options.groups,
      samplesPerGroup: options.samples,
      engines: {
        count: system.fleet.engines.length,
        simulated: system.simulator !== undefined,
        speed: system.simulator === undefined ? null : this.speed,
      },
      baseline,
      compared: others.filter((one) => one !== baseline),
      speedup: computeSpeedup('wallSeconds', run, baseline),
      simulatedSpeedup: computeSpeedup('engineSeconds', run, baseline),
      clockLagShare: this.clockLagShare,
      valid: problems.length === 0,
      notes,
    };
  }

  /** File of prompts for the checker. Standard input cannot be read twice, so its ids are written to a file. */
  private async promptsFile(): Promise<string> {
    const { prompts } = this.options;
    if (prompts !== '-') return prompts ?? EXAMPLE_PROMPTS;
    const file = join(this.folder, 'prompts.jsonl');
    await writeFile(file, this.dataSet.map(({ id }) => `${JSON.stringify({ id })}\n`).join(''));
    return file;
  }

  private async rollOut({ policy, rebalance, suffix }: PlannedRun, promptsFile: string): Promise<RunReport> {
    const { options, dataSet, system, display } = this;
    const job = `${this.jobBase}${suffix}`;
    const given = suffix === '' ? options.results : undefined;
    const resultsFile = given ?? join(this.folder, `results-${job}.jsonl`);
    await system.simulator?.reset();
    const readRebalance = await this.configureRebalance(rebalance);
    const steps = Math.ceil(dataSet.length / options.groups);
    const sink = await (options.continue ? ResultsFile.resume(resultsFile) : ResultsFile.create(resultsFile));
    await system.fleet.countOn();
    const watched = this.lengths?.watch(sink);
    const choices = new AutoChoices();
    const cpu = new CpuMeter(() => system.processes());
    const loop = new TrainerLoop(
      system.operations,
      {
        job,
        prompts: this.lengths?.forJob(job) ?? dataSet,
        groupsPerStep: options.groups,
        samples: options.samples,
        maxTokens: this.maxTokens(),
        sampling: this.sampling(),
        policy,
        held: options.continue ? sink.held : undefined,
        signal: this.signal,
      },
      {
        sink: watched ?? sink,
        meter: this.meter(),
        setWeightVersion: (version, trainer) => system.fleet.setWeightVersion(version, trainer),
        repeatWeights: (job, trainerEpoch) => system.fleet.repeatWeights(job, trainerEpoch),
        onStatus: (status) => {
          choices.add(status);
          this.show(policy.name, steps, status);
        },
        onStep: (step) => display.say(renderStep(policy.name, step, steps)),
        onCancelled: (roundId) => display.say(`Round ${roundId} was cancelled; what is left of it is in the next one.`),
        onMissing: (ids) =>
          display.say(`The payload store has lost payloads of ${ids.join(', ')}: these groups are submitted again`),
        onLost: (groups) => display.say(renderLost(groups)),
        onReconciled: (lost) => display.say(renderReconciled(lost)),
      },
    );
    let reports: StepReport[];
    try {
      reports = await loop.run();
      const { missing } = loop;
      if (missing.length > 0) display.say(renderMissing(missing));
    } finally {
      display.clear();
      await sink.close();
    }
    const cpuSeconds = cpu.seconds();
    const wallSeconds = reports.reduce((sum, step) => sum + step.wallSeconds, 0);
    await this.readClockLag();
    const totals = await this.computeTotals(loop.counts.ofJob!, reports, promptsFile, resultsFile);
    const { name, overProvision = 1 } = policy;
    const rebalanced = await readRebalance();
    const { summary } = await system.operations.call('job.ledger', { job });
    const { lengthBias, offPolicyShare, batchVariation, waste } = summary;
    return {
      policy: name,
      overProvision,
      parameters: policy,
      rebalance: rebalanced,
      wallSeconds,
      engineSeconds: sumEngineSeconds(reports),
      tailShare: computeTailShare(reports),
      cost: { lengthBias, offPolicyShare, batchVariation, waste },
      control: buildControlCost(cpuSeconds, summary),
      otherLengths: watched?.others ?? null,
      auto: choices.report(),
      steps: reports,
      totals,
    };
  }

  /** Configures the rebalancer of the pool. Returns a function that reads its counts since then. */
  private async configureRebalance(mode: TrainerOptions['rebalance']): Promise<() => Promise<RebalanceReport | null>> {
    const { options, system, speed } = this;
    if (options.rebalance === 'off') return () => Promise.resolve(null);
    const settings =
      system.simulator === undefined ? { policy: options.rebalancePolicy } : rebalanceSettings(options, speed);
    await system.operator.call('rebalance.configure', { ...settings, mode });
    const counts = async () => ({
      plans: await system.metric('rebalance_plans_total', `outcome="${mode === 'on' ? 'executed' : mode}"`),
      moves: await system.metric('moves_total', 'outcome="sent"'),
    });
    const before = await counts();
    return async () => {
      const now = await counts();
      const { rebalancePolicy: policy } = options;
      return { mode, policy, plans: now.plans - before.plans, moves: now.moves - before.moves };
    };
  }

  private maxTokens(): number {
    if (this.options.maxTokens !== undefined) return this.options.maxTokens;
    if (this.system.simulator === undefined && this.lengths === undefined) return DEFAULT_MAX_TOKENS;
    return LENGTH_PRESETS[this.options.lengths as LengthPresetName].capTokens;
  }

  private sampling(): SamplingParameters {
    const { seed, ...others } = this.options.sampling;
    // The baseline is a separate job, so its samples would get other seeds, and so other lengths if simulated.
    return this.system.simulator === undefined ? { ...others, seed: this.lengths?.seed ?? seed } : others;
  }

  private meter(): EngineMeter {
    const { simulator, control } = this.system;
    return simulator === undefined ? new LeaseIdleMeter(control) : new SimulatorIdleMeter(simulator);
  }

  private show(policy: string, steps: number, status: RoundStatus): void {
    if (!this.display.live) return;
    if (status.roundId !== this.shown.roundId) this.shown = { roundId: status.roundId, sinceMs: performance.now() };
    this.readServers();
    this.display.show({
      ...status,
      policy,
      steps,
      elapsedSeconds: (performance.now() - this.shown.sinceMs) / 1_000,
      servers: this.servers,
    });
  }

  /** Refreshes the servers' loads for the display; failures are ignored. */
  private readServers(): void {
    const now = performance.now();
    if (now - this.serversReadMs < SERVER_POLL_MS) return;
    this.serversReadMs = now;
    const { client, pool } = this.system;
    client.call(pool, 'lb.status', {}).then(
      ({ perServer }) => (this.servers = perServer),
      () => undefined,
    );
  }

  private async readClockLag(): Promise<void> {
    const state = await this.system.simulator?.state();
    if (state !== undefined) this.clockLagShare = Math.max(this.clockLagShare ?? 0, state.clockLagShare);
  }

  private async computeTotals(
    requests: RequestCounts,
    steps: readonly StepReport[],
    promptsFile: string,
    resultsFile: string,
  ) {
    const { dataSet, options } = this;
    const checked = await runChecker(promptsFile, resultsFile, { samples: options.samples, first: dataSet.length });
    const totals: Totals = {
      submitted: requests.submitted,
      accepted: steps.reduce((sum, { groupsAccepted }) => sum + groupsAccepted, 0) * options.samples,
      trained: requests.trained,
      unfinished: requests.unfinished,
      failed: requests.failed,
      dropped: requests.dropped,
      lost: checked.lost,
      duplicated: checked.duplicated,
      faulty: checked.unknown + checked.malformed + checked.inconsistent,
    };
    return totals;
  }
}
