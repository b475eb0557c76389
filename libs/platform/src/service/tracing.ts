import { Logger } from '@nestjs/common';
import { diag, DiagLogLevel } from '@opentelemetry/api';
import { tracing } from '@broomwagon/messaging';

/** An exporter without a collector reports every batch that it drops; one line in this time is enough. */
const FAILURE_LOGGED_EVERY_MS = 60_000;
/** Longest time in which a shutdown sends the last spans. */
const FLUSH_DEADLINE_MS = 2_000;

/**
 * Exports traces with OTLP over HTTP (JSON). Without an endpoint the SDK is not even loaded. OpenTelemetry defines the
 * variables `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*` and `OTEL_EXPORTER_OTLP_HEADERS`.
 * @returns function that sends the last spans; it never throws and ends within {@link FLUSH_DEADLINE_MS}
 */
export async function startTracing(app: string, endpoint: string | undefined): Promise<() => Promise<void>> {
  if (endpoint === undefined || tracing.isOn) return () => Promise.resolve();
  const [{ BatchSpanProcessor, NodeTracerProvider }, { OTLPTraceExporter }, { resourceFromAttributes }] =
    await Promise.all([
      import('@opentelemetry/sdk-trace-node'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
    ]);
  logFailures();
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` });
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ 'service.name': `broomwagon-${app}` }),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  provider.register();
  tracing.isOn = true;
  return async () => {
    tracing.isOn = false;
    const deadline = new Promise((resolve) => setTimeout(resolve, FLUSH_DEADLINE_MS).unref());
    await Promise.race([provider.shutdown().catch(() => undefined), deadline]);
  };
}

function logFailures(): void {
  const logger = new Logger('tracing');
  const ignore = () => undefined;
  let loggedAtMs = -Infinity;
  const error = (message: string) => {
    if (performance.now() - loggedAtMs < FAILURE_LOGGED_EVERY_MS) return;
    loggedAtMs = performance.now();
    logger.warn(`Traces are not exported: ${message}`);
  };
  diag.setLogger({ error, warn: ignore, info: ignore, debug: ignore, verbose: ignore }, DiagLogLevel.ERROR);
}
