import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  ClearSessionsRequest,
  ConfigurePoolRequest,
  DecisionsRequest,
  LIMITS,
  patternOf,
  PoolSettingsRequest,
  type ReplyOf,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { PoolStore } from '@broomwagon/state';
import { PoolSettingsService } from './pool-settings.service';

/** How a pool routes and how it did: `pool.configure`, `pool.settings`, `lb.decisions` and `lb.clear-sessions`. */
@Controller()
export class PoolController {
  constructor(
    private readonly settings: PoolSettingsService,
    private readonly store: PoolStore,
  ) {}

  @MessagePattern(patternOf('pool.configure'))
  configure(
    @Payload(new ContractPipe(ConfigurePoolRequest)) body: ConfigurePoolRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'pool.configure'>> {
    return this.settings.configure(context.pool, body);
  }

  @MessagePattern(patternOf('pool.settings'))
  read(
    @Payload(new ContractPipe(PoolSettingsRequest)) _body: PoolSettingsRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'pool.settings'>> {
    return this.settings.read(context.pool);
  }

  @MessagePattern(patternOf('lb.decisions'))
  async decisions(
    @Payload(new ContractPipe(DecisionsRequest)) body: DecisionsRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'lb.decisions'>> {
    const full = body.full ?? false;
    const limit = Math.min(body.limit ?? LIMITS.page, full ? LIMITS.explainsPerCall : LIMITS.page);
    const before = body.cursor == null ? undefined : Number(body.cursor);
    const { decisions, more } = await this.store.decisions(context.pool, { before, limit, full });
    const last = decisions.at(-1);
    return { decisions, ...(more && last ? { cursor: String(last.seq) } : {}) };
  }

  @MessagePattern(patternOf('lb.clear-sessions'))
  async clearSessions(
    @Payload(new ContractPipe(ClearSessionsRequest)) _body: ClearSessionsRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'lb.clear-sessions'>> {
    let cleared = 0;
    let cursor = '0';
    do {
      const page = await this.store.clearSessions(context.pool, cursor);
      cleared += page.cleared;
      cursor = page.cursor;
    } while (cursor !== '0');
    return { cleared };
  }
}
