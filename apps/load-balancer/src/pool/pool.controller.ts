import { Controller } from '@nestjs/common';
import {
  ConfigurePoolRequest,
  FindPoolRequest,
  LIMITS,
  PausePoolRequest,
  PoolHistoryRequest,
  PoolSettingsRequest,
  ResumePoolRequest,
  RollbackPoolRequest,
  sortTexts,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { ServiceConfig } from '@broomwagon/platform';
import { PoolDirectory, PoolStore } from '@broomwagon/state';
import { WaiterAnswersService } from '../waiters/waiter-answers.service';
import { PoolSettingsService } from './pool-settings.service';

/** The operations `pool.*`, except the operations of PoolController of the coordinator. */
@Controller()
export class PoolController {
  constructor(
    private readonly settings: PoolSettingsService,
    private readonly store: PoolStore,
    private readonly pools: PoolDirectory,
    private readonly waiters: WaiterAnswersService,
    private readonly config: ServiceConfig,
  ) {}

  @Operation('pool.configure')
  configure(body: ConfigurePoolRequest, { pool }: MessageContext) {
    return this.settings.configure(pool, body);
  }

  @Operation('pool.settings')
  read(_body: PoolSettingsRequest, { pool }: MessageContext) {
    return this.settings.read(pool);
  }

  @Operation('pool.history')
  async history({ limit }: PoolHistoryRequest, { pool }: MessageContext) {
    const { versions } = await this.store.history(pool);
    return { versions: versions.slice(0, limit) };
  }

  @Operation('pool.rollback')
  rollBack(body: RollbackPoolRequest, { pool }: MessageContext) {
    return this.settings.rollBack(pool, body);
  }

  @Operation('pool.find')
  async find({ name }: FindPoolRequest) {
    const served = this.config.servedPools();
    const named = served === '*' ? [] : served;
    const pools = sortTexts(new Set([...named, ...(await this.pools.list())]));
    return { known: served === '*' || pools.includes(name), pools: pools.slice(0, LIMITS.page) };
  }

  @Operation('pool.pause')
  pause({ deadlineMs }: PausePoolRequest, { pool }: MessageContext) {
    return this.setPaused(pool, { paused: true, deadlineMs });
  }

  @Operation('pool.resume')
  resume(_body: ResumePoolRequest, { pool }: MessageContext) {
    return this.setPaused(pool, { paused: false });
  }

  private async setPaused(pool: string, pause: { paused: boolean; deadlineMs?: number }) {
    await this.pools.add(pool);
    const { paused, changed, ...waiting } = await this.store.pause(pool, pause);
    this.waiters.sendAll(pool, waiting);
    return { paused, changed };
  }
}
