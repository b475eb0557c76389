import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { median, medianRatio, significant } from '../arithmetic';
import type { Child } from '../child';
import { readCpuSeconds } from '../generator/measurement';
import { Progress } from '../progress';
import type { Stage } from '../stage';
import { plainTable } from '../table';
import type { ClientJob, ClientResult } from './client.main';
import type { EngineCounts } from './engine.main';
import { SINGLE_TOKENS, startWays, toUrl, type Way, type WayResults } from './ways';

const RATE = 200;
const IN_FLIGHT = 32;
/** Number of responses that stream at 50 tokens per second while CPU time is measured. */
const STREAMING = 100;
const ROUNDS = 5;
const QUICK_ROUNDS = 3;
const MEASURE_MS = 5_000;
/** Age of young responses whose CPU time is measured. */
const YOUNG_MS = 1_000;
/** Age of long responses: the gateway reads the connection of such a response less often. */
const LONG_MS = 11_000;
const OPEN_STREAMS = 4_000;
/** Number of responses for which the memory per token is measured. */
const LONG_RESPONSES = 200;
const PAGE_BYTES = 4_096;
const SHORT = JSON.stringify({ input_ids: [11, 12, 13, 14], sampling_params: { max_new_tokens: 16 } });
const LONG_PROMPT = JSON.stringify({
  input_ids: Array.from({ length: 120_000 }, (_, index) => 100_000 + (index % 50_000)),
  sampling_params: { max_new_tokens: 16 },
});

/** The processes of the benchmark, and their measurements. */
class GatewayLoad {
  constructor(
    readonly engine: Child<void, EngineCounts>,
    readonly client: Child<ClientJob, ClientResult>,
  ) {}

  async latency({ port }: Way): Promise<ClientResult> {
    return whole(
      await this.client.ask({ kind: 'rate', url: toUrl(port), body: SHORT, perSecond: RATE, ms: MEASURE_MS }),
    );
  }

  /** Sends requests with `inFlight` at a time. @returns requests per second, and CPU seconds of the way per request */
  async requests({ port, processIds }: Way, body: string, inFlight: number) {
    const job = { kind: 'closed', url: toUrl(port), body, inFlight, ms: MEASURE_MS, processIds } as const;
    const { completed, cpuSeconds = Number.NaN } = whole(await this.client.ask(job));
    return { perSecond: completed / (MEASURE_MS / 1_000), cpuSeconds: cpuSeconds / completed };
  }

  /** Measures the CPU microseconds of the way per token. */
  async cpuPerToken({ port, processIds: [processId] }: Way, isStreamed: boolean, ageMs: number): Promise<number> {
    await this.open(port, STREAMING, { stream: isStreamed, chunksPerSecond: 50, tokensPerChunk: 1 });
    await delay(ageMs);
    const before = { cpu: readCpuSeconds(processId!), ...(await this.engine.ask()) };
    await delay(MEASURE_MS);
    const after = { cpu: readCpuSeconds(processId!), ...(await this.engine.ask()) };
    await this.close();
    return ((after.cpu - before.cpu) * 1e6) / (after.tokens - before.tokens);
  }

  /** Starts responses, and waits until the engine streams all of them. */
  async open(
    port: number,
    count: number,
    { stream, ...bench }: { stream: boolean; chunksPerSecond: number; tokensPerChunk: number },
  ): Promise<void> {
    const sampling = { max_new_tokens: 60_000, custom_params: bench };
    const prompt = { input_ids: [11, 12, 13, 14], return_logprob: true };
    const body = JSON.stringify({ ...prompt, sampling_params: sampling, stream });
    await this.client.ask({ kind: 'open', port, body, count });
    await this.until(count);
  }

  async close(): Promise<void> {
    whole(await this.client.ask({ kind: 'close' }));
    await this.until(0);
  }

  private async until(streams: number): Promise<void> {
    const endsAtMs = performance.now() + 120_000;
    for (let now = -1; now !== streams; now = (await this.engine.ask()).streams) {
      if (performance.now() > endsAtMs) throw new Error(`The engine has ${now} streams instead of ${streams}`);
      await delay(100);
    }
  }
}

/** `bench gateway`: sends the same requests in turn to the gateway, a bare pass-through and the engine itself. */
export async function benchGateway(
  stage: Stage,
  isQuick: boolean,
  peer?: string,
): Promise<{ report: object; text: string }> {
  await stage.start((line) => console.error(line));
  const load = new GatewayLoad(stage.child('gateway/engine.main.js'), stage.child('gateway/client.main.js'));
  const ways = await startWays(stage, load.engine, peer);
  const rounds = isQuick ? QUICK_ROUNDS : ROUNDS;
  const progress = new Progress(rounds + 3);
  progress.step('warming up');
  for (const way of ways) await warmUp(load, way);
  for (let round = 0; round < rounds; round++) {
    progress.step(`round ${round + 1}`);
    for (const way of ways) await measure(load, way);
  }
  const [gateway, passThrough, direct, two, single] = ways as [
    WayResults,
    WayResults,
    WayResults,
    WayResults,
    WayResults,
  ];
  progress.step('memory of tokens');
  const bytesPerToken = await memoryPerToken(load, gateway);
  progress.step('open streams');
  const memory = await memoryPerStream(load, gateway);
  progress.end();

  const over = (of: (way: WayResults) => number[]) => significant(medianRatio(of(gateway), of(passThrough)), 3);
  const added = (of: (way: WayResults) => number[]) =>
    significant(median(of(gateway).map((value, round) => value - of(direct)[round]!)), 3);
  const report = {
    loadAverage: loadavg()[0]!,
    addedP50Ms: added(({ p50Ms }) => p50Ms),
    addedP99Ms: added(({ p99Ms }) => p99Ms),
    overPassThrough: over(({ perCoreSecond }) => perCoreSecond),
    twoOverOne: significant(medianRatio(two.perSecond, gateway.perSecond), 3),
    twoOverOnePerCoreSecond: significant(medianRatio(two.perCoreSecond, gateway.perCoreSecond), 3),
    longPromptCpuOverPassThrough: over(({ longPromptMs }) => longPromptMs),
    tokenCpuOverPassThrough: over(({ streamedMicroseconds }) => streamedMicroseconds),
    singleTokenCpuOverPassThrough: significant(
      medianRatio(single.streamedMicroseconds, passThrough.streamedMicroseconds),
      3,
    ),
    // The pass-through cannot collect: its streamed token is the comparison.
    collectedCpuOverPassThrough: significant(
      medianRatio(gateway.collectedMicroseconds, passThrough.streamedMicroseconds),
      3,
    ),
    streams: memory.streams,
    bytesPerStream: memory.bytes,
    residentBytesPerStream: memory.residentBytes,
    bytesPerToken,
    ways: ways.map(({ port: _port, processIds: _ids, ...results }) => results),
  };
  return { report, text: `${formatTable(ways)}\n\n${formatSummary(report)}` };
}

/** Warms the way up, so that V8's compiler is not measured: it takes a quarter of the CPU of the first requests. */
async function warmUp(load: GatewayLoad, way: WayResults): Promise<void> {
  if (way.name === 'engine itself') return;
  await load.requests(way, SHORT, IN_FLIGHT);
  if (way.processIds.length > 1) return;
  await load.cpuPerToken(way, true, YOUNG_MS);
  if (way.name === 'gateway') await load.cpuPerToken(way, false, LONG_MS);
}

async function measure(load: GatewayLoad, way: WayResults): Promise<void> {
  if (way.name === SINGLE_TOKENS) {
    way.streamedMicroseconds.push(await load.cpuPerToken(way, true, YOUNG_MS));
    return;
  }
  const { p50Ms, p99Ms } = await load.latency(way);
  way.p50Ms.push(p50Ms!);
  way.p99Ms.push(p99Ms!);
  // The CPU time of the engine is not of interest.
  if (way.name === 'engine itself') return;
  const { perSecond, cpuSeconds } = await load.requests(way, SHORT, IN_FLIGHT);
  way.perSecond.push(perSecond);
  way.perCoreSecond.push(1 / cpuSeconds);
  if (way.processIds.length > 1) return;
  way.longPromptMs.push(1_000 * (await load.requests(way, LONG_PROMPT, 2)).cpuSeconds);
  const isGateway = way.name === 'gateway';
  way.streamedMicroseconds.push(await load.cpuPerToken(way, true, isGateway ? LONG_MS : YOUNG_MS));
  if (isGateway) way.collectedMicroseconds.push(await load.cpuPerToken(way, false, LONG_MS));
}

/** Memory per token of collected responses, bytes: id, log probability and five characters. */
async function memoryPerToken(load: GatewayLoad, gateway: Way): Promise<number> {
  await load.open(gateway.port, LONG_RESPONSES, { stream: false, chunksPerSecond: 5, tokensPerChunk: 64 });
  await delay(2_000);
  const before = { ...(await readMemory(gateway)), ...(await load.engine.ask()) };
  await delay(20_000);
  const after = { ...(await readMemory(gateway)), ...(await load.engine.ask()) };
  await load.close();
  return significant((after.bytes - before.bytes) / (after.tokens - before.tokens), 3);
}

async function memoryPerStream(load: GatewayLoad, gateway: Way) {
  const before = await readMemory(gateway);
  await load.open(gateway.port, OPEN_STREAMS, { stream: true, chunksPerSecond: 0.5, tokensPerChunk: 1 });
  // Each stream receives at least one chunk meanwhile.
  await delay(6_000);
  const { streams } = await load.engine.ask();
  const after = await readMemory(gateway);
  await load.close();
  return {
    streams,
    bytes: Math.round((after.bytes - before.bytes) / streams),
    residentBytes: Math.round((after.residentBytes - before.residentBytes) / streams),
  };
}

/** Memory of a process after a garbage collection: of objects and buffers, and resident. */
async function readMemory({ port, processIds }: Way): Promise<{ bytes: number; residentBytes: number }> {
  const processId = processIds[0]!;
  process.kill(processId, 'SIGUSR2');
  await delay(1_000);
  process.kill(processId, 'SIGUSR2');
  await delay(500);
  const page = await (await fetch(`${toUrl(port)}/metrics`)).text();
  const value = (name: string): number => Number(new RegExp(`^\\w*${name}(?:{.*})? (\\S+)$`, 'm').exec(page)?.[1]);
  const pages = Number(readFileSync(`/proc/${processId}/statm`, 'latin1').split(' ')[1]);
  return {
    bytes: value('nodejs_heap_size_used_bytes') + value('nodejs_external_memory_bytes'),
    residentBytes: pages * PAGE_BYTES,
  };
}

/** @throws Error if a request or a connection failed */
function whole(result: ClientResult): ClientResult {
  if (result.failed > 0) throw new Error(`${result.failed} requests failed`);
  return result;
}

function formatTable(ways: WayResults[]): string {
  const cell = (values: number[], digits: number) => (values.length === 0 ? '' : median(values).toFixed(digits));
  const head = [
    '',
    'p50 ms',
    'p99 ms',
    'requests/s',
    'per core-second',
    'CPU ms, 120,000 ids',
    'CPU us per token, streamed',
    'collected',
  ];
  return plainTable(
    head,
    ways.map((way) => [
      way.name,
      cell(way.p50Ms, 2),
      cell(way.p99Ms, 2),
      cell(way.perSecond, 0),
      cell(way.perCoreSecond, 0),
      cell(way.longPromptMs, 2),
      cell(way.streamedMicroseconds, 1),
      cell(way.collectedMicroseconds, 1),
    ]),
  );
}

function formatSummary(report: Record<string, unknown>): string {
  const rows: [string, string, string][] = [
    [`added p50 at ${RATE}/s, ms`, 'addedP50Ms', 'at most 2'],
    ['added p99, ms', 'addedP99Ms', 'at most 10'],
    ['requests per core-second over the pass-through', 'overPassThrough', 'at least 0.5'],
    ['requests/s of two gateways over one', 'twoOverOne', ''],
    ['the same per core-second', 'twoOverOnePerCoreSecond', ''],
    ['CPU of a prompt of 120,000 ids over it', 'longPromptCpuOverPassThrough', ''],
    ['CPU per streamed token over it', 'tokenCpuOverPassThrough', 'at most 1.3'],
    ['the same, each token at once', 'singleTokenCpuOverPassThrough', 'at most 1.3'],
    ['CPU per collected token over its streamed one', 'collectedCpuOverPassThrough', 'at most 0.65'],
    ['open streams', 'streams', '4,000'],
    ['bytes per stream', 'bytesPerStream', 'at most 40,000'],
    ['the same, resident memory', 'residentBytesPerStream', ''],
    ['bytes per token kept', 'bytesPerToken', 'at most 16'],
  ];
  return plainTable(
    ['', 'measured', 'target'],
    rows.map(([what, name, target]) => [what, String(report[name]), target]),
  );
}
