import { isBroomwagonError } from '@broomwagon/contracts';
import type { GenerationRequest, PassedRequest } from '@broomwagon/engines';
import { type EndSpan, type SpanOptions, tracing } from '@broomwagon/messaging';
import type { Lease } from '../leases/lease-calls';
import type { Generated } from './run-on-engine';

/** Ports of addresses that name none. */
const DEFAULT_PORTS: Record<string, number> = { 'http:': 80, 'https:': 443 };

/**
 * The span of one call of an engine, with the attributes of OpenTelemetry for generative AI. No attribute has a part of
 * a prompt or response.
 */
export function toGenerationSpan(
  { serverId, endpoint, dialect, model, weightVersion }: Lease,
  pool: string,
  request: GenerationRequest | PassedRequest,
): SpanOptions {
  if (!tracing.isOn) return { name: '' };
  const operation = 'prompt' in request && request.prompt.messages === undefined ? 'text_completion' : 'chat';
  const { protocol, hostname, port } = new URL(endpoint);
  return {
    name: model === undefined ? operation : `${operation} ${model}`,
    kind: 'client',
    attributes: {
      'gen_ai.operation.name': operation,
      'gen_ai.provider.name': dialect,
      'gen_ai.request.model': model,
      ...('prompt' in request ? toRequestAttributes(request) : {}),
      'server.address': hostname,
      'server.port': port === '' ? DEFAULT_PORTS[protocol] : Number(port),
      'broomwagon.pool': pool,
      'broomwagon.server_id': serverId,
      'broomwagon.weight_version': weightVersion,
      'broomwagon.engine_request_id': request.engineRequestId,
    },
  };
}

function toRequestAttributes({ sampling = {}, maxTokens, made }: GenerationRequest) {
  const { temperature, topP, topK, seed } = sampling;
  return {
    'gen_ai.request.max_tokens': Number.isFinite(maxTokens) ? maxTokens : undefined,
    'gen_ai.request.temperature': temperature,
    'gen_ai.request.top_p': topP,
    'gen_ai.request.top_k': topK,
    'gen_ai.request.seed': seed,
    // The response was begun by earlier calls.
    'broomwagon.continued_tokens': made?.tokenCount,
  };
}

/** Adds how a call has ended. */
export function endGenerationSpan(end: EndSpan, generated: Generated): void {
  const { tokenCount, result } = generated;
  const reason =
    'finishReason' in generated ? generated.finishReason : 'stopped' in generated ? 'stopped' : 'aborted_by_engine';
  const error = 'error' in generated ? generated.error : undefined;
  end(
    {
      'gen_ai.usage.input_tokens': result?.usage?.promptTokens,
      'gen_ai.usage.output_tokens': tokenCount,
      'gen_ai.response.finish_reasons': error === undefined ? [reason] : undefined,
    },
    error && getErrorType(error),
  );
}

/** Type of an error for a span: the code of a typed error. */
export function getErrorType(error: Error): string {
  return isBroomwagonError(error) ? error.code : error.name;
}
