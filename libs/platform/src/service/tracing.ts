import { outages } from '@broomwagon/contracts';
import { diag } from '@opentelemetry/api';
import type { SpanExporter } from '@opentelemetry/sdk-trace-node';
import { tracing } from '@broomwagon/messaging';
import { withoutCredentials } from '../logging/without-credentials';
import { VERSION } from '../project';

/** Maximum time in which a shutdown sends the last spans, milliseconds. */
const FLUSH_DEADLINE_MS = 2_000;

/**
 * Starts the export of traces with OTLP over HTTP (JSON). Without an endpoint, the SDK is not loaded. The SDK reads the
 * variables `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*` and `OTEL_EXPORTER_OTLP_HEADERS`.
 * @param replicaId id of this process among the replicas of its service
 * @returns function that sends the last spans within {@link FLUSH_DEADLINE_MS}, and never throws
 */
export async function startTracing(
  app: string,
  endpoint: string | undefined,
  replicaId?: string,
): Promise<() => Promise<void>> {
  if (endpoint === undefined || tracing.isOn) return () => Promise.resolve();
  const [{ BatchSpanProcessor, NodeTracerProvider }, { OTLPTraceExporter }, { resourceFromAttributes }] =
    await Promise.all([
      import('@opentelemetry/sdk-trace-node'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
    ]);
  // The exporter logs each failed batch; the log of outages has one line for all of them.
  diag.disable();
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` });
  noteOutages(exporter, `the collector of traces at ${withoutCredentials(endpoint)}`);
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({
      'service.name': `broomwagon-${app}`,
      'service.version': VERSION,
      'service.instance.id': replicaId,
    }),
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

/** Notes when the collector does not take spans, and when it takes them again. */
function noteOutages(exporter: SpanExporter, name: string): void {
  const send = exporter.export.bind(exporter);
  exporter.export = (spans, report) =>
    send(spans, (result) => {
      if (result.error === undefined) outages.end(name);
      else outages.begin({ name, isLeaf: true }, result.error.message);
      report(result);
    });
}
