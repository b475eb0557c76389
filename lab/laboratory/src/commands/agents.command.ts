import { readFile, writeFile } from 'node:fs/promises';
import { ENGINE_PRESETS } from '@broomwagon/models';
import { type Command, Option } from 'commander';
import { AGENT_WORKLOADS, type AgentWorkloadName } from '../agents/agent-workload';
import { BALANCERS, PROGRAMS } from '../agents/balancers';
import { compareBalancers, compareOnTrace } from '../agents/compare-balancers';
import { readMooncakeTrace } from '../agents/mooncake-trace';
import { tabulateComparison, tabulateTargets } from '../agents/print-comparison';
import { checkTargets } from '../agents/targets';
import { Progress } from '../output/progress';
import { screenTable } from '../output/write-output';
import { numberList, wholeNumber } from './numbers';

interface AgentsOptions {
  seeds: number;
  firstSeed: number;
  servers: number;
  oversubscription?: number[];
  workload?: AgentWorkloadName;
  quick?: boolean;
  json?: string;
  trace?: string;
}

/** Working set of all sessions over the KV memory of the fleet. */
const OVERSUBSCRIPTIONS: Record<AgentWorkloadName, number[]> = { agents: [0.5, 1, 2, 4], nemo: [0.63, 0.95, 1.9] };
const QUICK_SEEDS = 2;
const engine = ENGINE_PRESETS['30b-a3b-agents'];

export function agentsCommand(program: Command): void {
  program
    .command('agents')
    .description(
      'rounds of agent sessions under the rules of several routers, on the same sessions; see docs/agents.md',
    )
    .option('--seeds <n>', 'rounds of each kind, each with other sessions', wholeNumber(1, 1_000), 8)
    .option('--first-seed <n>', 'seed of the first round', wholeNumber(0, 1_000_000_000), 5_001)
    .option('--servers <n>', 'engines', wholeNumber(1, 10_000), 8)
    .option('--oversubscription <x,...>', 'working sets of all sessions over the KV memory', numberList(0.01, 100))
    .addOption(new Option('--workload <name>', 'only these sessions').choices(Object.keys(AGENT_WORKLOADS)))
    .option('--quick', `${QUICK_SEEDS} rounds of each kind`)
    .option('--trace <file>', 'the sessions of this trace, in the format of Mooncake, instead')
    .option('--json <file>', 'write all results to this file')
    .action(async (options: AgentsOptions) => {
      const comparisons = options.trace === undefined ? compareDrawn(options) : [await compareTrace(options)];
      const targets = comparisons.flatMap((comparison) => checkTargets(comparison));
      for (const comparison of comparisons) {
        const { workload, oversubscription, seeds } = comparison;
        const load = workload === 'trace' ? '' : `, working set ${oversubscription} times the KV memory`;
        console.log(`\nSessions ${workload}${load}, ${seeds.length} rounds:`);
        console.log(screenTable(tabulateComparison(comparison)));
      }
      if (targets.length > 0) console.log(`\nTargets of "${PROGRAMS}":\n${screenTable(tabulateTargets(targets))}`);
      if (options.json) {
        await writeFile(
          options.json,
          `${JSON.stringify({ servers: options.servers, comparisons, targets }, null, 1)}\n`,
        );
      }
    });
}

function compareDrawn({ quick, seeds: wanted, firstSeed, workload, oversubscription, servers }: AgentsOptions) {
  const count = quick ? QUICK_SEEDS : wanted;
  const seeds = Array.from({ length: count }, (_, index) => firstSeed + index);
  const names = workload ? [workload] : (Object.keys(AGENT_WORKLOADS) as AgentWorkloadName[]);
  const kinds = names.flatMap((name) =>
    (oversubscription ?? OVERSUBSCRIPTIONS[name]).map((load) => ({ workload: name, oversubscription: load })),
  );
  const progress = new Progress(kinds.length * count * Object.keys(BALANCERS).length, 'rounds');
  const comparisons = kinds.map((kind) => {
    const onRun = (balancer: string): void => {
      progress.doing(`${kind.workload} ${kind.oversubscription}x, ${balancer}`);
      progress.done();
    };
    return compareBalancers({ ...kind, servers, engine, seeds, onRun });
  });
  progress.stop();
  return comparisons;
}

async function compareTrace({ trace, servers }: AgentsOptions) {
  return compareOnTrace(readMooncakeTrace(await readFile(trace!, 'utf8')), { servers, engine });
}
