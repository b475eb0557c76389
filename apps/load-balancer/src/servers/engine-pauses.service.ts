import { Injectable, Logger } from '@nestjs/common';
import { WeightStore, type EngineStep } from '@broomwagon/state';
import { EngineHealth } from './engine-health';

/** Engines told at once. */
const ENGINES_AT_ONCE = 64;
/** Longest call of an engine, with some margin. */
const CALL_MS = 10_000;

/**
 * Pauses engines while the weights of their pool change, where they can be paused, and lets them go on afterwards. What
 * is not confirmed is said again by any replica; both calls are harmless when they are repeated.
 */
@Injectable()
export class EnginePausesService {
  private readonly logger = new Logger(EnginePausesService.name);

  constructor(
    private readonly weights: WeightStore,
    private readonly engines: EngineHealth,
  ) {}

  /** All that engines are to be told now. @throws BroomwagonError UNAVAILABLE */
  async tell(pool: string): Promise<void> {
    let cursor = '0';
    do {
      const page = await this.weights.engineSteps(pool, cursor);
      for (let from = 0; from < page.steps.length; from += ENGINES_AT_ONCE) {
        await Promise.all(page.steps.slice(from, from + ENGINES_AT_ONCE).map((step) => this.tellOne(pool, step)));
      }
      cursor = page.cursor;
    } while (cursor !== '0');
  }

  private async tellOne(pool: string, step: EngineStep): Promise<void> {
    const { serverId, syncId, mode } = step;
    const engine = { ...step, pool };
    try {
      await (mode === undefined ? this.engines.resume(engine) : this.engines.pause(engine, mode));
      const { late } = await this.weights.engineTold(pool, step, CALL_MS);
      // The change has ended while the engine was being paused.
      if (late) await this.engines.resume(engine);
    } catch (error) {
      const what = mode === undefined ? 'told to go on' : 'paused';
      this.logger.warn({ err: error, pool, serverId, syncId }, `An engine could not be ${what}; it is told again`);
    }
  }
}
