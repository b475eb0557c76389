import { Command, InvalidArgumentError } from 'commander';
import { significant } from '../arithmetic';
import { plainTable } from '../table';
import { computeLimits, computeSize, type Workload } from './fleet-size';

type Options = Omit<Workload, 'gpus'> & { gpus: number[] };
type Size = ReturnType<typeof computeSize>;

export const FLEETS: Options = {
  gpus: [64, 1_000, 10_000],
  gpusPerEngine: 1,
  inFlightPerEngine: 100,
  tokensPerSecond: 30,
  tokens: 8_000,
  samplesPerGroup: 16,
  saveIntervalSeconds: 15,
};

const count = (value: number) => value.toLocaleString('en');
const rounded = (value: number) => count(significant(value, 2));
const bytes = (value: number) => (value >= 1e9 ? `${rounded(value / 1e9)} GB` : `${rounded(value / 1e6)} MB`);

const ROWS: [string, (size: Size) => string][] = [
  ['engines', ({ engines }) => count(engines)],
  ['requests in flight', ({ inFlight }) => count(inFlight)],
  ['requests that end, a second', ({ requestsPerSecond }) => rounded(requestsPerSecond)],
  ['partial saves a second', ({ savesPerSecond }) => rounded(savesPerSecond)],
  ['pools, each on a primary of Redis of its own', ({ pools }) => count(pools)],
  ['Redis: busy cores, all primaries', ({ redisCores }) => rounded(redisCores)],
  ['Redis: maxmemory, all primaries', ({ redisMaxmemoryBytes }) => bytes(redisMaxmemoryBytes)],
  ['payload stores, each a primary of Redis', ({ payloadStores }) => count(payloadStores)],
  ['payload store: size', ({ payloadBytes }) => bytes(payloadBytes)],
  ['payload store: writes a second', ({ payloadBytesPerSecond }) => bytes(payloadBytesPerSecond)],
  ['NATS: busy cores', ({ natsCores }) => rounded(natsCores)],
  ['load-balancer replicas', ({ loadBalancers }) => count(loadBalancers)],
  ['trainer-coordinator replicas', ({ coordinators }) => count(coordinators)],
  ['worker replicas', ({ workers }) => count(workers)],
  ['CONCURRENCY of a worker, at least', ({ requestsPerWorker }) => count(requestsPerWorker)],
  ['memory of a worker', ({ workerBytes }) => bytes(workerBytes)],
  ['cores, all processes, half busy', ({ cores }) => count(cores)],
  ['gateway replicas, if they serve all requests', ({ gateways }) => count(gateways)],
  ['time to start all requests at once, s', ({ startSeconds }) => rounded(startSeconds)],
];

/** Both tables of docs/operations/sizing.md. */
export function formatTables({ gpus, ...workload }: Options): string {
  const sizes = gpus.map((one) => computeSize({ gpus: one, ...workload }));
  const fleets = plainTable(
    ['GPUs', ...gpus.map(count)],
    ROWS.map(([name, show]) => [name, ...sizes.map(show)]),
  );
  const limits = plainTable(
    ['one instance of', 'is full at requests in flight'],
    computeLimits({ gpus: 1, ...workload }).map(({ part, inFlight }) => [part, rounded(inFlight)]),
  );
  return `${fleets}\n\n${limits}`;
}

function positive(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('It is a number above 0.');
}

/** `npm run bench -- size`: measures nothing; computes from the measurements of the other benchmarks. */
export function sizeCommand(): Command {
  return new Command('size')
    .description('replicas and memory for fleets, computed from measured costs')
    .option('--gpus <numbers...>', 'fleets', (text: string, all?: number[]) => [...(all ?? []), positive(text)])
    .option('--gpus-per-engine <number>', 'GPUs of one engine', positive, FLEETS.gpusPerEngine)
    .option('--in-flight-per-engine <number>', 'requests that run in one engine', positive, FLEETS.inFlightPerEngine)
    .option('--tokens-per-second <number>', 'of one request', positive, FLEETS.tokensPerSecond)
    .option('--tokens <number>', 'mean length of a response', positive, FLEETS.tokens)
    .option('--samples-per-group <number>', 'samples of one prompt', positive, FLEETS.samplesPerGroup)
    .option(
      '--save-interval-seconds <number>',
      'PARTIAL_SAVE_INTERVAL_MS of the workers',
      positive,
      FLEETS.saveIntervalSeconds,
    )
    .action((options: Options) => console.log(formatTables({ ...options, gpus: options.gpus ?? FLEETS.gpus })));
}
