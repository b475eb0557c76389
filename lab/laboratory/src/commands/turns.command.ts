import type { Command } from 'commander';
import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import { Stage } from '../../../bench/src/stage';
import { AgenticRun, type AgenticResult, type AgenticSetup } from '../agentic/agentic-run';
import { RemoteBalancer } from '../agentic/remote-balancer';
import { StaticHashRouter } from '../baselines/routers';
import { screenTable } from '../output/write-output';
import { GUI_AGENT } from '../parameters';
import { ProductionRouter } from '../routing/production-router';
import { wholeNumber } from './numbers';

const WAYS = ['static hash', 'global balancer, simulated', 'global balancer, on the services'] as const;

export function turnsCommand(program: Command): void {
  program
    .command('turns')
    .description('a screenshot agent under a static hash, and under the real load-balancer; engines are simulated')
    .option('--seeds <n>', 'runs, each with another seed', wholeNumber(1, 100), 5)
    .option('--trajectories <n>', 'of each run', wholeNumber(1, 100_000), GUI_AGENT.trajectories)
    .action(async ({ seeds, trajectories }: { seeds: number; trajectories: number }) => {
      const setup = { ...GUI_AGENT, trajectories };
      const stage = new Stage();
      try {
        await stage.start((line) => console.error(line));
        const rows: string[][] = [];
        for (let seed = 1; seed <= seeds; seed++) {
          const hash = new AgenticRun(setup, seed).run(new StaticHashRouter(setup.servers));
          const simulated = new AgenticRun(setup, seed).run(new ProductionRouter(setup.servers));
          const real = await onServices(stage, setup, seed);
          [hash, simulated, real].forEach((result, index) => rows.push(row(seed, WAYS[index]!, result, hash)));
        }
        const head = ['seed', 'routed by', 'a generation', 'slowest trajectory', 'hash / this, generation', 'slowest'];
        console.log(screenTable({ head, rows }));
      } finally {
        await stage.stop();
      }
    });
}

/** Runs with a real load-balancer, with its state in Redis: every turn acquires a lease, and releases it at its end. */
async function onServices(stage: Stage, setup: AgenticSetup, seed: number): Promise<AgenticResult> {
  const pool = `turns-${seed}`;
  const { nats, redis } = stage.services;
  await stage.startApp('load-balancer', pool, [pool], redis);
  const [worker] = await stage.state(redis).fill(pool, setup.servers, 1);
  const connection = await connectNats({ url: nats.url, name: pool });
  try {
    const client = new TypedClient(new MessagingClient(connection));
    return await new AgenticRun(setup, seed).runRemotely(new RemoteBalancer(client, pool, worker!));
  } finally {
    await connection.drain();
  }
}

function row(seed: number, way: string, result: AgenticResult, hash: AgenticResult): string[] {
  const { meanTurnSeconds, maxSeconds } = result;
  return [
    `${seed}`,
    way,
    `${meanTurnSeconds.toFixed(2)} s`,
    `${maxSeconds.toFixed(0)} s`,
    `${(hash.meanTurnSeconds / meanTurnSeconds).toFixed(2)}x`,
    `${(hash.maxSeconds / maxSeconds).toFixed(2)}x`,
  ];
}
