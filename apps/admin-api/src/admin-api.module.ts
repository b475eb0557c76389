import { Logger, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { HealthRegistry, Metrics } from '@broomwagon/platform';
import { CredentialStore, StateModule } from '@broomwagon/state';
import { AdminApiConfig } from './admin-api.config';
import { AccessGuard } from './auth/access.guard';
import { Authenticator } from './auth/authenticator';
import { OidcIssuer } from './auth/oidc-issuer';
import { Refusals } from './auth/refusals';
import { AuditLog } from './audit/audit-log';
import { ChangesService } from './changes/changes.service';
import { LostChanges } from './audit/lost-changes';
import { EventFeed } from './events/event-feed';
import { ProblemFilter } from './http/problem.filter';
import { PublicController } from './http/public.controller';
import { RateLimits } from './http/rate-limits';
import { RequestTraces } from './http/request-traces';
import { RoutesController } from './routes/routes.controller';
import { AdminHandlers } from './operations/admin-handlers';
import { LogLevels } from './operations/log-levels';
import { Readiness } from './reports/readiness';
import { OperationCaller } from './operations/operation-caller';
import { EventHistory } from './reports/event-history';
import { JobFrontier } from './reports/job-frontier';
import { Overview } from './reports/overview';
import { RequestTotals } from './reports/request-totals';
import { RoundExplanation } from './reports/explanation/round-explanation';
import { RoundTimeline } from './reports/round-timeline';
import { ServerCalls } from './reports/server-calls';
import { SpeedReports } from './reports/speed-reports';

/** The REST API for operators: routes, tokens, rate limits. All state is in Redis and behind the other services. */
@Module({
  imports: [
    StateModule.forRootAsync({
      inject: [AdminApiConfig, HealthRegistry, Metrics],
      useFactory: (config: AdminApiConfig, readiness: HealthRegistry, metrics: Metrics) => ({
        ...config.redisConfig(),
        readiness,
        metrics,
      }),
    }),
  ],
  controllers: [PublicController, RoutesController],
  providers: [
    AccessGuard,
    Authenticator,
    RateLimits,
    Refusals,
    RequestTraces,
    AdminHandlers,
    AuditLog,
    ChangesService,
    EventFeed,
    EventHistory,
    JobFrontier,
    LogLevels,
    Readiness,
    LostChanges,
    OidcIssuer,
    OperationCaller,
    Overview,
    RequestTotals,
    RoundExplanation,
    RoundTimeline,
    ServerCalls,
    SpeedReports,
    { provide: APP_FILTER, useClass: ProblemFilter },
  ],
})
export class AdminApiModule implements OnApplicationBootstrap {
  constructor(
    private readonly credentials: CredentialStore,
    private readonly config: AdminApiConfig,
  ) {}

  /** Creates the first token and shows it once, since no caller could use the API without a token. */
  async onApplicationBootstrap(): Promise<void> {
    if (this.config.adminTokenSha256.length > 0) return;
    const first = await this.credentials.createFirst();
    if (first === undefined) return;
    new Logger(AdminApiModule.name).warn('No token was valid: a token with the role admin is printed on stdout');
    process.stdout.write(`Admin token (shown only once, valid for a day): ${first.token}\n`);
  }
}
