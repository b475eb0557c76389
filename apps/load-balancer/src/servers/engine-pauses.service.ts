import { Injectable, Logger } from '@nestjs/common';
import { Alarms, failpoint, InEachPool } from '@broomwagon/platform';
import { splitPages, PoolDirectory, WeightStore, type EngineStep } from '@broomwagon/state';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { EngineHealth } from './engine-health';

/** Interval of pause and resume calls, milliseconds: the maximum delay of a resume after a change of weights. */
const TELL_INTERVAL_MS = 100;
/** Maximum engines called at once. */
const ENGINES_AT_ONCE = 64;
/** Maximum duration of a call of an engine, milliseconds. */
const CALL_MS = 10_000;

/**
 * Pauses engines that support pauses while the weights of their pool change. Resumes the engines afterwards, also when
 * their server was removed. Any replica repeats a call that was not confirmed: a repeat changes nothing. An engine of
 * two pools is resumed when neither pool needs the pause.
 */
@Injectable()
export class EnginePausesService {
  private readonly logger = new Logger(EnginePausesService.name);
  /** Engines that this replica has paused and not resumed, by pool. Redis may lose its record of a pause. */
  private readonly paused = new Map<string, Map<string, EngineStep>>();

  constructor(
    private readonly weights: WeightStore,
    private readonly engines: EngineHealth,
    private readonly pools: PoolDirectory,
    private readonly alarms: Alarms,
    private readonly metrics: LoadBalancerMetrics,
  ) {}

  /** Makes all pause and resume calls that are due. @throws BroomwagonError UNAVAILABLE */
  @InEachPool('engine-pauses', TELL_INTERVAL_MS)
  async tell(pool: string): Promise<void> {
    await this.recordLost(pool);
    let resumes = false;
    for await (const page of this.weights.pages('engineSteps', pool)) {
      await this.tellAll(page.steps, (step) => this.pause(pool, step));
      ({ resumes } = page);
    }
    const overdue = resumes ? await this.resumeAll(pool) : 0;
    const message = 'Engines that were paused for new weights could not be resumed; the call is repeated for an hour';
    this.alarms.look(pool, 'engine-pauses', overdue > 0 ? 'engines-paused' : undefined, message, { overdue });
  }

  /** Records paused engines without a record in Redis as engines to resume: Redis may have lost the record. */
  private async recordLost(pool: string): Promise<void> {
    const known = this.paused.get(pool);
    for (const page of splitPages([...(known?.values() ?? [])])) {
      const { recorded } = await this.weights.engineKnown(pool, { steps: page });
      for (const [position, step] of page.entries()) if (!recorded[position]) known!.delete(buildEngineKey(step));
    }
    if (known?.size === 0) this.paused.delete(pool);
  }

  /** Resumes engines. @returns the number of engines that could not be resumed for a minute */
  private async resumeAll(pool: string): Promise<number> {
    let overdue = 0;
    for await (const page of this.weights.pages('engineResumes', pool)) {
      await this.tellAll(page.steps, (step) => this.resume(pool, step));
      for (const step of page.givenUp) {
        this.paused.get(pool)?.delete(buildEngineKey(step));
        this.metrics.enginesGivenUp.inc({ pool });
        this.logger.error({ pool, ...step }, 'An engine may still be paused: it could not be resumed for an hour');
      }
      overdue += page.overdue;
    }
    return overdue;
  }

  private async tellAll(steps: EngineStep[], tell: (step: EngineStep) => Promise<void>): Promise<void> {
    for (const page of splitPages(steps, ENGINES_AT_ONCE)) await Promise.all(page.map(tell));
  }

  private async pause(pool: string, step: EngineStep): Promise<void> {
    const known = this.paused.get(pool) ?? new Map<string, EngineStep>();
    this.paused.set(pool, known.set(buildEngineKey(step), step));
    try {
      await this.engines.getAdapter({ ...step, pool }).pause(step.mode!);
      await failpoint('load-balancer.engine.after-pause');
      const { late } = await this.weights.engineTold(pool, step, CALL_MS);
      // The change ended while the pause was sent.
      if (late && !(await this.isHeldElsewhere(pool, step))) await this.engines.getAdapter({ ...step, pool }).resume();
    } catch (error) {
      this.logger.warn({ err: error, pool, ...step }, 'An engine could not be paused; the call is repeated');
    }
  }

  private async resume(pool: string, step: EngineStep): Promise<void> {
    try {
      // If another pool pauses the engine too, that pool resumes the engine when its change of weights ends.
      if (!(await this.isHeldElsewhere(pool, step))) await this.engines.getAdapter({ ...step, pool }).resume();
      await failpoint('load-balancer.engine.after-resume');
      await this.weights.engineTold(pool, step, CALL_MS);
      this.paused.get(pool)?.delete(buildEngineKey(step));
    } catch (error) {
      this.logger.warn({ err: error, pool, ...step }, 'An engine could not be resumed; the call is repeated');
    }
  }

  private async isHeldElsewhere(pool: string, step: EngineStep): Promise<boolean> {
    for (const other of await this.pools.list()) {
      if (other !== pool && (await this.weights.engineHeld(other, step)).held) return true;
    }
    return false;
  }
}

function buildEngineKey({ dialect, endpoint }: EngineStep): string {
  return `${dialect}|${endpoint}`;
}
