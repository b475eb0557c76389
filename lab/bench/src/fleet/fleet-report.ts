import { plainTable } from '../table';
import type { FleetResults } from './fleet-results';
import { type PerPart, PARTS, sumParts } from './processes';

type Report = ReturnType<FleetResults['report']>;

const count = (value: number) => Math.round(value).toLocaleString('en');
const NAMES: Record<keyof PerPart, string> = {
  nats: 'NATS',
  redis: 'Redis',
  payloads: 'Redis of payloads',
  balancer: 'load-balancer',
  coordinator: 'trainer-coordinator',
  worker: 'worker',
  gateway: 'gateway',
  trainer: 'trainer',
  client: 'client',
};

/** The report as tables for a terminal. */
export function formatReport(report: Report): string {
  const holders = plainTable(
    ['holder, tokens of an event', 'requests', 'busy', 'a core', 'us a token', 'us an event', 'kB a request', 'pace'],
    report.holders.map(({ holder, interval, ...one }) => [
      `${holder}, ${interval}`,
      count(one.requests),
      one.busyShare.toFixed(2),
      count(one.inFlightPerCore),
      String(one.tokenUs),
      String(one.eventUs),
      (one.bytesPerRequest / 1_000).toFixed(0),
      one.pace.toFixed(2),
    ]),
  );
  const { responses, costs } = report;
  const worker = report.holders.find((one) => one.holder === 'worker' && one.interval === 64);
  const columns = [responses.worker, responses.gateway, costs.saveUs, worker!.allUs];
  const parts = plainTable(
    ['CPU us of', 'response by worker', 'by gateway', 'save of 1,000 tokens', 'second of a held request'],
    [
      ...PARTS.map((part) => [NAMES[part], ...columns.map((column) => String(column[part]))]),
      ['all', ...columns.map((column) => sumParts(column).toPrecision(3))],
      ['direct call, undici', String(responses.undiciUs), '', '', ''],
      ['direct call, aiohttp', Number.isNaN(responses.aiohttpUs) ? 'no' : String(responses.aiohttpUs), '', '', ''],
    ],
  );
  const rows: [string, unknown, string][] = [
    ['worker: CPU of a token, events of 64 over events of 1', report.tokenCpuRatio, 'at most 0.05'],
    ['worker: requests in flight a core', count(report.workerInflightPerCore), 'at least 20,000'],
    ['gateway, not streamed: requests in flight a core', count(report.gatewayInflightPerCore), 'at least 12,000'],
    ['CPU us of worker and Redis for a save of 1,000 tokens', report.saveCpuUs, 'at most 30'],
    ['bytes of saves over bytes of a response of 8,000 tokens', report.savedOverMade, 'at most 1.2'],
    ['CPU of a short response over a direct call of undici', report.responseCpuOverDirect, 'at most 6'],
    ['the same, of aiohttp', report.responseCpuOverAiohttp ?? 'not measured', ''],
    ['cores for 10,000 GPUs', report.coresFor10000Gpus, 'at most 100'],
    ['primaries of Redis for 10,000 GPUs', report.primariesFor10000Gpus, 'at most 4'],
  ];
  const summary = plainTable(
    ['', 'measured', 'target'],
    rows.map(([what, value, target]) => [what, String(value), target]),
  );
  return [holders, parts, summary].join('\n\n');
}
