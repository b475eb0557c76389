import { Controller, Logger } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { LOG_LEVEL_PATTERN, SetLogLevelRequest, type LogLevelReply } from '@broomwagon/contracts';
import { ContractPipe, PARKED } from '@broomwagon/messaging';
import type { Logger as PinoLogger } from 'pino';

/** App, replica and logger of this process. */
export class LogSource {
  constructor(
    readonly app: string,
    readonly replicaId: string,
    readonly pino: PinoLogger,
  ) {}
}

/** Sets the level of the logs of this process, until the process ends or a request sets another level. */
@Controller()
export class LogLevelController {
  private readonly logger = new Logger(LogLevelController.name);

  constructor(private readonly source: LogSource) {}

  /** Sets the level. A replica that the request does not name sends no reply. */
  @MessagePattern(LOG_LEVEL_PATTERN, { broadcast: true })
  set(@Payload(new ContractPipe(SetLogLevelRequest)) request: SetLogLevelRequest): LogLevelReply | typeof PARKED {
    const { app, replicaId, pino } = this.source;
    const { level } = request;
    if ((request.app ?? app) !== app || (request.replicaId ?? replicaId) !== replicaId) return PARKED;
    this.logger.warn({ level, before: pino.level }, 'The level of the logs was changed');
    pino.level = level;
    return { app, replicaId, level };
  }
}
