import { Controller, Get, Header } from '@nestjs/common';
import { cutText } from '@broomwagon/contracts';
import { HealthCheckService, HealthIndicatorService, type HealthCheckResult } from '@nestjs/terminus';
import { Metrics } from '../metrics';
import { HealthRegistry, runCheck, type HealthCheck } from './health-registry';

/** Maximum characters of a reason in a label. */
const MAX_REASON_LENGTH = 160;

/** `/livez`, `/readyz`, `/startupz` for probes (200 or 503, with reasons), `/metrics` for Prometheus. */
@Controller()
export class HealthController {
  private readonly passing;
  private readonly problem;

  constructor(
    private readonly health: HealthCheckService,
    private readonly indicators: HealthIndicatorService,
    private readonly registry: HealthRegistry,
    private readonly metrics: Metrics,
  ) {
    this.passing = metrics.gauge('ready', 'Checks of /readyz: 1 when one passes, 0 when it fails', ['check']);
    this.problem = metrics.gauge('readiness_problem', 'Always 1: a check of /readyz that fails now, and why', [
      'check',
      'reason',
    ]);
  }

  @Get('livez')
  live(): Promise<HealthCheckResult> {
    return this.run(this.registry.liveChecks());
  }

  @Get('readyz')
  ready(): Promise<HealthCheckResult> {
    return this.run(this.registry.readyChecks());
  }

  @Get('startupz')
  startup(): Promise<HealthCheckResult> {
    return this.run(this.registry.startChecks());
  }

  @Get('metrics')
  @Header('Content-Type', 'text/plain; version=0.0.4; charset=utf-8')
  async prometheus(): Promise<string> {
    const checks = await this.registry.runReadyChecks();
    // Old reasons are removed, so that few series exist at any time.
    this.problem.reset();
    for (const { check, passes, reason = '' } of checks) {
      this.passing.set({ check }, Number(passes));
      if (!passes) this.problem.set({ check, reason: cutText(reason, MAX_REASON_LENGTH) }, 1);
    }
    return this.metrics.text();
  }

  private run(checks: Map<string, HealthCheck>): Promise<HealthCheckResult> {
    return this.health.check(
      [...checks].map(([name, check]) => async () => {
        const indicator = this.indicators.check(name);
        const { passes, reason } = await runCheck(name, check);
        if (!passes) return indicator.down({ reason });
        return reason === undefined ? indicator.up() : indicator.up({ warning: reason });
      }),
    );
  }
}
