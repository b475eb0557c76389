import { cpus } from 'node:os';
import { WorkerConfig } from '../../../../apps/worker/src/worker.config';
import { median, medianRatio, significant } from '../arithmetic';
import { computeSize } from '../size/fleet-size';
import { FLEETS } from '../size/size.command';
import { type FleetCosts, type SAVED_TOKENS, splitSave } from './fleet-costs';
import { type Held, type Holder, TOKENS_PER_SECOND } from './phases';
import { type Part, type PerPart, perPart, sumParts } from './processes';

/** Ways of a short response. */
export type Way = 'worker' | 'gateway' | 'undici';
type SaveSize = keyof typeof SAVED_TOKENS;

const US = 1e6;
/** Processes of a partial save that the target is about. */
const SAVE_PARTS = ['worker', 'redis', 'payloads'] as const;

/** All measurements of `bench fleet`, and the numbers that follow from them. */
export class FleetResults {
  idle: PerPart = perPart(() => 0);
  readonly held: Held[] = [];
  bytes = { savedOverMade: Number.NaN, perToken: Number.NaN };
  private readonly responses: Record<Way, PerPart[]> = { worker: [], gateway: [], undici: [] };
  private readonly python: number[] = [];
  private readonly saves: Record<SaveSize, PerPart[]> = { large: [], small: [] };

  constructor(private readonly engines: number) {}

  add(way: Way, cpuSeconds: PerPart): void {
    this.responses[way].push(cpuSeconds);
  }

  addPython(cpuSeconds: number): void {
    this.python.push(cpuSeconds);
  }

  /** @param savesPerSecond number of saves in each second of the first measurement; the second one has none */
  addSaves(size: SaveSize, saved: PerPart, unsaved: PerPart, savesPerSecond: number): void {
    this.saves[size].push(perPart((part) => (saved[part] - unsaved[part]) / savesPerSecond));
  }

  report() {
    const costs = this.costs();
    const size = computeSize({ ...FLEETS, gpus: 10_000 }, costs);
    const undici = this.responses.undici.map(({ client }) => client);
    const all = this.responses.worker.map((one) => sumParts(one));
    const holders = (['worker', 'gateway'] as const).flatMap((holder) =>
      [1, 64].map((interval) => this.holder(holder, interval)),
    );
    const perCore = (name: Holder) =>
      holders.find(({ holder, interval }) => holder === name && interval === 64)!.inFlightPerCore;
    const [single, many] = [1, 64].map((interval) => this.tokenUs('worker', interval));
    return {
      measuredAt: new Date().toISOString(),
      machine: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}`,
      tokenCpuRatio: significant(medianRatio(many!, single!), 3),
      workerInflightPerCore: perCore('worker'),
      gatewayInflightPerCore: perCore('gateway'),
      saveCpuUs: significant(sumParts(costs.saveUs, SAVE_PARTS), 3),
      savedOverMade: costs.savedOverMade,
      responseCpuOverDirect: significant(medianRatio(all, undici), 3),
      responseCpuOverAiohttp: this.python.length === 0 ? undefined : significant(medianRatio(all, this.python), 3),
      coresFor10000Gpus: size.cores,
      primariesFor10000Gpus: size.primaries,
      holders,
      responses: {
        worker: costs.responseUs,
        gateway: costs.gatewayResponseUs,
        undiciUs: microseconds(undici),
        aiohttpUs: microseconds(this.python),
      },
      idleShare: perPart((part) => significant(this.idle[part], 2)),
      costs,
    };
  }

  private holder(holder: Holder, interval: number) {
    const rounds = this.settled(holder, interval);
    const of = (value: (held: Held) => number) => significant(median(rounds.map(value)), 3);
    return {
      holder,
      interval,
      requests: rounds.at(-1)!.requests,
      busyShare: significant(rounds.at(-1)!.busyShare, 2),
      pace: of(({ pace }) => pace),
      inFlightPerCore: of(({ requests, busyShare }) => requests / busyShare),
      tokenUs: of(({ usage, tokens }) => (usage.cpuSeconds[holder] * US) / tokens),
      eventUs: of(({ usage, events }) => (usage.cpuSeconds[holder] * US) / events),
      bytesPerRequest: of(({ bytesPerRequest }) => bytesPerRequest),
      allUs: perPart((part) => of(({ usage, requests }) => (usage.cpuSeconds[part] * US) / usage.seconds / requests)),
    };
  }

  /** Rounds at about half load: the first of several rounds finds the number of requests. */
  private settled(holder: Holder, interval: number): Held[] {
    const rounds = this.held.filter((held) => held.holder === holder && held.interval === interval);
    return rounds.length > 1 ? rounds.slice(1) : rounds;
  }

  private tokenUs(holder: Holder, interval: number): number[] {
    return this.settled(holder, interval).map(({ usage, tokens }) => (usage.cpuSeconds[holder] * US) / tokens);
  }

  private costs(): FleetCosts {
    const medians = (rounds: readonly PerPart[]) =>
      perPart((part) => microseconds(rounds.map((one) => Math.max(0, one[part]))));
    const [saveUs, smallSaveUs] = [medians(this.saves.large), medians(this.saves.small)];
    const savesPerSecond = 1_000 / new WorkerConfig().partialSaveIntervalMs;
    const savedUs = (part: Part): number => {
      const { fixedUs, tokenUs } = splitSave({ saveUs, smallSaveUs }, part);
      return savesPerSecond * fixedUs + TOKENS_PER_SECOND * tokenUs;
    };
    const [worker, gateway] = (['worker', 'gateway'] as const).map((holder) => this.settled(holder, 64));
    const held = (part: Part, { usage, requests }: Held): number =>
      ((usage.cpuSeconds[part] / usage.seconds - this.idle[part]) * US) / requests - savedUs(part);
    const middle = (values: number[], digits = 3) => significant(Math.max(0, median(values)), digits);
    const most = (rounds: Held[], value: (held: Held) => number) => Math.max(...rounds.map(value));
    return {
      tokenUs: {
        worker: middle(worker!.map((one) => held('worker', one) / TOKENS_PER_SECOND)),
        gateway: middle(this.tokenUs('gateway', 64)),
      },
      heldUs: perPart((part) =>
        part === 'worker'
          ? 0
          : middle(
              worker!.map((one) => held(part, one)),
              2,
            ),
      ),
      saveUs,
      smallSaveUs,
      responseUs: medians(this.responses.worker),
      gatewayResponseUs: medians(this.responses.gateway),
      engineUs: significant((this.idle.balancer * US) / this.engines, 2),
      requestBytes: {
        worker: middle(worker!.map(({ bytesPerRequest }) => bytesPerRequest)),
        gateway: middle(gateway!.map(({ bytesPerRequest }) => bytesPerRequest)),
      },
      heldRequests: {
        worker: most(worker!, ({ requests }) => requests),
        gateway: most(gateway!, ({ requests }) => requests),
      },
      tokenBytes: significant(this.bytes.perToken, 3),
      savedOverMade: significant(this.bytes.savedOverMade, 3),
    };
  }
}

function microseconds(seconds: readonly number[]): number {
  return significant(median(seconds) * US, 3);
}
