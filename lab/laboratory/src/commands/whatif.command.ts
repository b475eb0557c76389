import { readFile } from 'node:fs/promises';
import { invalidField, TAIL_POLICIES, TailPolicy, type TailPolicyName } from '@broomwagon/contracts';
import { validate } from '@broomwagon/messaging';
import { findPolicyFault } from '@broomwagon/policies';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { readEvents, type RecordedRun } from '../events/recorded-run';
import { recordedPolicy, recordedSeconds, simulateRecording } from '../events/simulate-recording';
import { mean, type RunResult } from '../experiments/run-setup';
import { highest } from '../highest';
import { svgPlot } from '../output/plot';
import { screenTable, drawn, WRITTEN_TO } from '../output/write-output';
import { addFleetOptions, addSpeedOption, toFleet, type FleetOptions } from './fleet-options';
import { numberList } from './numbers';

interface Options extends FleetOptions {
  events: string;
  job?: string;
  policy: TailPolicyName[];
  overProvision: number[];
  set: Partial<TailPolicy>;
  out: string;
}

export function whatifCommand(program: Command): void {
  const command = program
    .command('whatif')
    .description('replays a recorded stream of events under other policies')
    .requiredOption(
      '--events <file>',
      'events, one a line: npm start -- --record-events FILE, or npm run lab -- record',
    )
    .option('--job <id>', 'id of the job; default: the job with the most rounds')
    .addOption(new Option('--policy <name...>', 'policies to try').choices(TAIL_POLICIES).default(['resume', 'drip']))
    .option('--over-provision <list>', 'launched / needed groups to try', numberList(1), [1.25, 1.375, 1.5])
    .option('--set <json>', 'more fields of the policies, e.g. \'{"maxCuts":2}\'', policyFields, {})
    .option('--out <folder>', 'folder of the plot', 'laboratory-output');
  addSpeedOption(addFleetOptions(command)).action(async (options: Options) => {
    const run = readEvents(await readFile(options.events, 'utf8'), options.events, options.job);
    const policies = buildPolicies(options, run);
    const fleet = toFleet(options);
    const own = recordedPolicy(run);
    const recorded = recordedSeconds(run, options.speed);
    const again = simulateRecording(run, fleet, own);
    console.log(describe(run, own));
    const tried = policies.map((policy) => ({ policy, result: simulateRecording(run, fleet, policy) }));
    console.log(screenTable(table(recorded, again, own, tried)));
    const error = again.outcome.seconds / sum(recorded) - 1;
    console.log(`The error of the model is ${percent(error)}: smaller differences mean nothing.`);
    const series = [{ policy: own, result: again }, ...tried].map(({ policy, result }) => ({
      name: formatPolicyName(policy),
      points: result.outcome.steps.map(({ step, seconds }) => ({ x: step, y: seconds })),
    }));
    const svg = svgPlot({
      title: `Steps of ${run.job} under other policies`,
      xLabel: 'step',
      yLabel: 'seconds',
      series: [
        { name: 'recorded', points: recorded.map((y, index) => ({ x: run.rounds[index]!.step, y })) },
        ...series,
      ],
    });
    console.log(`${WRITTEN_TO} ${await drawn(options.out, { 'whatif.svg': svg })}`);
  });
}

interface Tried {
  policy: TailPolicy;
  result: RunResult;
}

function table(recorded: readonly number[], again: RunResult, own: TailPolicy, tried: readonly Tried[]) {
  const row = (name: string, { outcome, ledger, lengthBias }: RunResult): string[] => [
    name,
    `${Math.round(mean(outcome.steps.map((step) => step.seconds)))} s`,
    `${Math.round(outcome.seconds)} s`,
    `${(again.outcome.seconds / outcome.seconds).toFixed(2)}x`,
    percent(ledger.offPolicyShare),
    lengthBias.toFixed(3),
    ledger.batchVariation.toFixed(2),
    percent(ledger.waste.share),
  ];
  const blank = ['', '', '', ''];
  return {
    head: ['', 'mean step', 'all steps', 'speed', 'off-policy', 'bias', 'variation', 'waste'],
    rows: [
      ['recorded', `${Math.round(mean(recorded))} s`, `${Math.round(sum(recorded))} s`, '', ...blank],
      row(`${formatPolicyName(own)}, simulated`, again),
      ...tried.map(({ policy, result }) => row(formatPolicyName(policy), result)),
    ],
  };
}

/** Fields of a policy with an option of their own, which would replace them. */
const OPTION_OF = { name: '--policy', overProvision: '--over-provision' };

function buildPolicies({ policy, overProvision, set }: Options, run: RecordedRun): TailPolicy[] {
  for (const [field, option] of Object.entries(OPTION_OF)) {
    if (Object.hasOwn(set, field)) throw invalidField(field, `is given by ${option}, not by --set`);
  }
  const groupsPerStep = highest(run.rounds.map(({ neededGroups }) => neededGroups));
  const policies = policy.flatMap((name): TailPolicy[] => {
    if (name === 'auto') return [{ ...set, name }];
    return (name === 'wait' ? [1] : overProvision).map((factor) => ({ ...set, name, overProvision: factor }));
  });
  for (const one of policies) {
    // The coordinator checks fields, types and ranges in the same way.
    validate(TailPolicy, one);
    const fault = findPolicyFault(one, groupsPerStep);
    if (fault) throw invalidField(fault.field, `${fault.reason} (policy ${one.name})`);
  }
  return policies;
}

function describe(run: RecordedRun, own: TailPolicy): string {
  const lines = [
    `Job ${run.job}: ${run.rounds.length} rounds, ${run.lengths.size} groups of ${run.samples}, cap ${run.capTokens} tokens, policy ${formatPolicyName(own)}.`,
  ];
  if (run.missingEvents > 0) lines.push(`${run.missingEvents} events are missing: the stream had cut them off.`);
  if (run.partialGroups > 0) lines.push(`${run.partialGroups} groups never finished and are left out.`);
  return lines.join('\n');
}

function formatPolicyName({ name, overProvision = 1 }: TailPolicy): string {
  return name === 'wait' || name === 'auto' ? name : `${name} ${Number(overProvision.toFixed(3))}`;
}

function policyFields(text: string): Partial<TailPolicy> {
  try {
    const fields: unknown = JSON.parse(text);
    if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) return fields;
  } catch {
    // Reported below.
  }
  throw new InvalidArgumentError('Expected a JSON object with fields of a tail policy.');
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(share !== 0 && Math.abs(share) < 0.1 ? 1 : 0)} %`;
}
