import type { IncomingHttpHeaders } from 'node:http';
import { findPromptFault, invalidField, type Prompt, textOfPrompt } from '@broomwagon/contracts';
import { REQUEST_FIELDS } from '@broomwagon/engines';
import type { GenerationRequest } from '../../answers/generation-responder';
import { continuesEngineAborts, parsePlacement, wantsResume } from '../../answers/placement';
import { MAX_CHOICES } from '../../answers/prompts';
import { isCount, isSet, parseObject } from '../../fields/read-fields';
import { parseRequestId } from '../../answers/request-id';
import type { Caller } from '../../keys/api-keys';

const ROUTING_KEY = 'x-smg-routing-key';

/** Fields of requests that the gateway knows. */
export interface KnownFields {
  /** Fields for which the engine returns values that the gateway does not write. */
  passed: ReadonlySet<string>;
  /**
   * Fields that the gateway reads, or may give to an engine unread. A request with any other field is passed on too,
   * because the gateway does not know the meaning of the field.
   */
  read: ReadonlySet<string>;
}

export function knownFields(read: Iterable<string>, passed: readonly string[] = []): KnownFields {
  return { read: new Set(read), passed: new Set(passed) };
}

/** All fields that engines declare for requests of a route. */
export function declaredFields(path: string): string[] {
  return Object.values(REQUEST_FIELDS).flatMap((routes) => routes[path] ?? []);
}

/** The first field because of which a request is passed to the engine as it is. */
export function findPassed(fields: Record<string, unknown>, { passed, read }: KnownFields): string | undefined {
  return Object.entries(fields).find(([name, value]) =>
    passed.has(name) ? isSet(value) : !read.has(name) && value !== null && value !== undefined,
  )?.[0];
}

/** A request of which the gateway reads only the fields that route it. */
export interface PassedBody {
  body: Record<string, unknown>;
  /** Routes of engines that take the body. */
  paths: readonly string[];
  reason: string;
  /** The prompt, if it is known. */
  prompt: unknown;
  /** Name of the field with the id of the request. */
  idField: 'request_id' | 'rid';
}

/**
 * Builds a request whose answer is passed on unchanged. A call that is cut starts again.
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function passedRequest(
  { body, paths, reason, prompt, idField }: PassedBody,
  headers: IncomingHttpHeaders,
  caller: Caller,
): GenerationRequest {
  checkChoices(body);
  // The engine gets the id of the call, so a list of ids would be lost.
  const id = parseRequestId(body[idField] ?? undefined, idField, headers);
  // Only the value of the header is checked: a request that is passed on is never continued.
  wantsResume(headers);
  const input = {
    // The model decides which servers can take the request.
    prompt: { ...toPrompt(prompt), engineFields: { model: body.model, lora_path: body.lora_path } },
    sampling: {},
    maxTokens: Infinity,
    keepsStop: false,
    isContinued: false,
    continuesEngineAborts: continuesEngineAborts(headers),
    placement: parsePlacement(headers, caller, body.session_id ?? undefined),
    passed: { body, paths, reason, headers: toEngineHeaders(headers) },
  };
  return { ...id, stream: body.stream === true, inputs: [input] };
}

/** Headers that engines read: SGLang orders requests by the key (`--schedule-policy routing-key`). */
function toEngineHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const key = headers[ROUTING_KEY];
  return typeof key === 'string' ? { [ROUTING_KEY]: key } : {};
}

/** @throws BroomwagonError VALIDATION_FAILED */
function checkChoices({ n, sampling_params: sampling }: Record<string, unknown>): void {
  const list: unknown[] = Array.isArray(sampling) ? sampling : [sampling];
  const ofSampling = list.map((one) => parseObject(one ?? undefined, 'sampling_params').n);
  for (const [field, value] of [['n', n] as const, ...ofSampling.map((one) => ['sampling_params.n', one] as const)]) {
    if (value === undefined || value === null || isCount(value, 1, MAX_CHOICES)) continue;
    throw invalidField(field, `must be a whole number from 1 to ${MAX_CHOICES}`);
  }
}

/**
 * Prompt by which the server of the request, and the parent of its recorded turn, are found. The engine checks the
 * prompt.
 */
function toPrompt(prompt: unknown): Prompt {
  if (typeof prompt === 'string') return { text: prompt };
  if (findPromptFault({ promptTokenIds: prompt }) === undefined) return { promptTokenIds: prompt as number[] };
  const isChat = findPromptFault({ messages: prompt }) === undefined;
  return { text: isChat ? textOfPrompt({ messages: prompt as Prompt['messages'] }) : '' };
}
