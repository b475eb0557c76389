import { Controller } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { GetReadinessRequest, READINESS_PATTERN, type ReadinessReply } from '@broomwagon/contracts';
import { validate } from '@broomwagon/messaging';
import { Alarms } from '../alarms';
import { LogSource } from '../logging/log-level.controller';
import { VERSION } from '../project';
import { HealthRegistry } from './health-registry';

/**
 * Time in which requests share one reply, milliseconds, because checks write to stores, and every open console sends
 * requests.
 */
const SHARED_MS = 1_000;

/**
 * Reports the checks of `/readyz`, the version and the alarms over NATS, so that the console needs no address of a
 * replica.
 */
@Controller()
export class ReadinessController {
  private shared: { reply: Promise<ReadinessReply>; sinceMs: number } | undefined;

  constructor(
    private readonly source: LogSource,
    private readonly health: HealthRegistry,
    private readonly alarms: Alarms,
  ) {}

  @MessagePattern(READINESS_PATTERN, { broadcast: true })
  get(@Payload() request: object): Promise<ReadinessReply> {
    validate(GetReadinessRequest, request);
    const now = performance.now();
    if (this.shared === undefined || now - this.shared.sinceMs >= SHARED_MS) {
      this.shared = { reply: this.read(), sinceMs: now };
    }
    return this.shared.reply;
  }

  private async read(): Promise<ReadinessReply> {
    const { app, replicaId } = this.source;
    const checks = await this.health.runReadyChecks();
    const ready = checks.every(({ passes }) => passes);
    return { app, replicaId, version: VERSION, ready, checks, alarms: this.alarms.list() };
  }
}
