import { Logger } from '@nestjs/common';
import { diag, DiagLogLevel } from '@opentelemetry/api';
import { tracing } from '@broomwagon/messaging';

/** Time in which failures of the exporter are logged once, milliseconds. Without a collector, every batch fails. */
const FAILURE_LOGGED_EVERY_MS = 60_000;
/** Maximum time in which a shutdown sends the last spans, milliseconds. */
const FLUSH_DEADLINE_MS = 2_000;

/**
 * Starts the export of traces with OTLP over HTTP (JSON). Without an endpoint, the SDK is not loaded. The SDK reads the
 * variables `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*` and `OTEL_EXPORTER_OTLP_HEADERS`.
 * @returns function that sends the last spans within {@link FLUSH_DEADLINE_MS}, and never throws
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
