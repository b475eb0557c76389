import { writeFile } from 'node:fs/promises';
import { Command } from 'commander';
import { benchAbort } from './abort/abort-bench';
import { benchAcquire } from './acquire/acquire-bench';
import { benchConsole } from './console/console-bench';
import { benchCost } from './cost/cost-bench';
import { benchCoordinator } from './coordinator/coordinator-bench';
import { benchPayload } from './payload/payload-bench';
import { benchPlan } from './plan/plan-bench';
import { benchEvents } from './events/events-bench';
import { benchFleet } from './fleet/fleet-bench';
import { benchGateway } from './gateway/gateway-bench';
import { benchSaves } from './saves/saves-bench';
import { benchScripts } from './scripts/script-bench';
import { sizeCommand } from './size/size.command';
import { benchVerl } from './verl/verl-bench';
import { Stage } from './stage';

/** `npm run bench -- NAME [--json FILE] [--quick]` */
interface Options {
  json?: string;
  quick?: boolean;
  against?: string;
  peer?: string;
}
/** @param own value of the option that only this benchmark has */
type Bench = (stage: Stage, isQuick: boolean, own?: string) => Promise<{ report: object; text: string }>;

async function run(bench: Bench, options: Options): Promise<void> {
  const stage = new Stage();
  const interrupt = () => void stage.stop().then(() => process.exit(130));
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  try {
    const { report, text } = await bench(stage, options.quick ?? false, options.against ?? options.peer);
    console.log(text);
    if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`);
  } finally {
    await stage.stop();
  }
}

const program = new Command('bench').description(
  'Benchmarks on this machine; lab/bench/README.md explains the numbers.',
);
const commands: [string, string, Bench][] = [
  ['coordinator', 'rounds of requests: submit, claim, complete, cut, requeue', benchCoordinator],
  ['payload', 'the queue with small and large payloads behind its references', benchPayload],
  ['saves', 'partial saves of 1,000 tokens, one by one and gathered: CPU of worker and Redis', benchSaves],
  ['fleet', 'what a token, a save and a response cost all processes of a fleet', benchFleet],
  ['abort', 'aborts beside 10,000 requests in flight, and one plan', benchAbort],
  ['scripts', 'each transition with the largest inputs its limits allow: none may take 5 ms', benchScripts],
  ['events', 'acquires beside 10,000 readers of events, and beside readers that do not read', benchEvents],
  ['console', 'the console in Chromium beside 1,000 servers and a round of 16,384 requests', benchConsole],
  ['verl', "acquires of Python through verl's balancer and through Broomwagon", benchVerl],
  ['plan', 'one rebalance plan for 1,000 servers and 100,000 requests', benchPlan],
];
for (const [name, description, bench] of commands) {
  add(name, description, bench);
}
add('acquire', 'the load-balancer beside a raw echo, the raw transition and a raw handler', benchAcquire).option(
  '--against <dir>',
  'another checkout that is built, of which one replica is measured too',
);
add('gateway', 'the gateway beside a bare pass-through and the engine itself', benchGateway).option(
  '--peer <name>',
  'also the same load through this gateway, installed from the package index of pip: smg',
);
add('cost', 'what single operations cost Redis in this build and in another one', benchCost).option(
  '--against <dir>',
  'another checkout that is built; by default this one',
);

program.addCommand(sizeCommand());

function add(name: string, description: string, bench: Bench): Command {
  return program
    .command(name)
    .description(description)
    .option('--json <file>', 'write the numbers to a file')
    .option('--quick', 'fewer and shorter rounds')
    .action((options: Options) => run(bench, options));
}

program.parseAsync().catch((error: unknown) => {
  console.error((error as Error).stack ?? error);
  process.exitCode = 1;
});
