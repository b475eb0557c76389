import { Controller } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { GetReadinessRequest, READINESS_PATTERN, type ReadinessReply } from '@broomwagon/contracts';
import { validate } from '@broomwagon/messaging';
import { LogSource } from '../service/log-level.controller';
import { HealthRegistry } from './health-registry';

/** Reports the checks of `/readyz` over NATS, for the console: operators need no address of a replica. */
@Controller()
export class ReadinessController {
  constructor(
    private readonly source: LogSource,
    private readonly health: HealthRegistry,
  ) {}

  @MessagePattern(READINESS_PATTERN, { broadcast: true })
  async get(@Payload() request: object): Promise<ReadinessReply> {
    validate(GetReadinessRequest, request);
    const { app, replicaId } = this.source;
    const checks = await this.health.runReadyChecks();
    return { app, replicaId, ready: checks.every(({ passes }) => passes), checks };
  }
}
