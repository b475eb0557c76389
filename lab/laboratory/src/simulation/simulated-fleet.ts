import { EngineModel, LockstepEngines, type EngineSequence, type EngineParameters } from '@broomwagon/models';
import type { VirtualClock } from './virtual-clock';

export interface FleetOptions {
  servers: number;
  parameters: EngineParameters;
  /** Whether all servers decode in lockstep, as the data-parallel ranks of one engine do. */
  lockstep?: boolean;
}

/** Engines that advance together: one engine, or all engines in lockstep. */
interface Unit {
  /** Moves on by so many seconds; sequences that end are passed to `deliver`. */
  advance(seconds: number): void;
  secondsToNextEvent(): number;
  syncedAtSeconds: number;
  /** Number of the last schedule; an action scheduled under another number is expired. */
  version: number;
  isDirty: boolean;
}

/** Shortest time for which a unit is scheduled, because of rounding, seconds. */
const SHORTEST_SECONDS = 1e-9;

/** The engines of a pool on a virtual clock. Servers are numbered from 0. */
export class SimulatedFleet<Id> {
  readonly engines: readonly EngineModel<Id>[];
  private readonly units: readonly Unit[];
  private dirty: Unit[] = [];

  constructor(
    private readonly clock: VirtualClock,
    readonly options: FleetOptions,
    /** Called with the seconds since the decode of the sequence began. */
    private readonly onFinish: (server: number, id: Id, decodeSeconds: number) => void,
  ) {
    this.engines = Array.from({ length: options.servers }, () => new EngineModel<Id>(options.parameters));
    this.units = options.lockstep ? [this.lockstepUnit()] : this.engines.map((_, server) => this.singleUnit(server));
    clock.onInstantOver(() => this.scheduleDirty());
  }

  add(server: number, sequence: EngineSequence<Id>): void {
    this.touch(server);
    this.engines[server]!.add(sequence);
  }

  /** Aborts a sequence. Returns its tokens generated here. */
  remove(server: number, id: Id): number {
    this.touch(server);
    return this.engines[server]!.remove(id) ?? 0;
  }

  /** Tokens that a sequence has generated here up to now. */
  made(server: number, id: Id): number {
    this.touch(server);
    return this.engines[server]!.made(id) ?? 0;
  }

  stall(server: number, seconds: number): void {
    this.touch(server);
    this.engines[server]!.stall(seconds);
  }

  /** Returns the engine, advanced to the present time. */
  engine(server: number): EngineModel<Id> {
    this.touch(server);
    return this.engines[server]!;
  }

  /** Advances all engines to the present time. */
  sync(): void {
    this.engines.forEach((_, server) => this.touch(server));
  }

  private touch(server: number): void {
    const unit = this.units[this.options.lockstep ? 0 : server]!;
    const seconds = this.clock.now - unit.syncedAtSeconds;
    unit.syncedAtSeconds = this.clock.now;
    if (seconds > 0) unit.advance(seconds);
    if (unit.isDirty) return;
    unit.isDirty = true;
    this.dirty.push(unit);
  }

  private scheduleDirty(): void {
    for (const unit of this.dirty) {
      unit.isDirty = false;
      this.schedule(unit);
    }
    this.dirty = [];
  }

  private schedule(unit: Unit): void {
    const version = ++unit.version;
    const seconds = unit.secondsToNextEvent();
    if (seconds === Infinity) return;
    this.clock.after(Math.max(seconds, SHORTEST_SECONDS), () => {
      if (unit.version !== version || unit.isDirty) return;
      // At least the scheduled time, since the clock's difference is rounded and could end just before the event.
      unit.advance(Math.max(seconds, this.clock.now - unit.syncedAtSeconds));
      unit.syncedAtSeconds = this.clock.now;
      this.schedule(unit);
    });
  }

  /** Ends are reported by a separate action, so that no caller is called back in the middle of its own call. */
  private deliver(server: number, id: Id): void {
    this.clock.at(this.clock.now, () => {
      if (this.engines[server]!.state(id) !== 'finished') return;
      const decodeSeconds = this.engines[server]!.secondsSinceDecode(id) ?? 0;
      this.engines[server]!.remove(id);
      this.onFinish(server, id, decodeSeconds);
    });
  }

  private singleUnit(server: number): Unit {
    const engine = this.engines[server]!;
    return {
      syncedAtSeconds: 0,
      version: 0,
      isDirty: false,
      secondsToNextEvent: () => engine.secondsToNextEvent(),
      advance: (seconds) => {
        for (const id of engine.advance(seconds)) this.deliver(server, id);
      },
    };
  }

  private lockstepUnit(): Unit {
    const engines = new LockstepEngines(this.engines);
    return {
      syncedAtSeconds: 0,
      version: 0,
      isDirty: false,
      secondsToNextEvent: () => engines.secondsToNextEvent(),
      advance: (seconds) => {
        let left = seconds;
        while (left > 0) left -= engines.advance(left, (server, id) => this.deliver(server, id));
      },
    };
  }
}
