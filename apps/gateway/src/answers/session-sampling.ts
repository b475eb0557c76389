import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { isObject } from '@broomwagon/contracts';
import { withRetry } from '@broomwagon/messaging';
import { toTrajectoryId, TrajectoryStore } from '@broomwagon/state';
import { GatewayConfig } from '../gateway.config';
import type { Exchange } from '../http/route';
import { namesSession, parseSession } from './placement';

type Fields = Record<string, unknown>;

/** Time for which a replica relies on an answer that no session of the pool has sampling parameters, milliseconds. */
const RELIED_ON_MS = 1_000;

/** Place of the sampling parameters in requests of a route. */
export interface SamplingForm {
  /** Field with the parameters, or with a list of the parameters of each prompt. Default: the body itself. */
  parent?: string;
  /** Names of the route for parameters, by the names of vLLM, if the names differ. */
  names?: Record<string, string>;
}

/**
 * Sets the sampling parameters of a session in each of its requests, as the gateway of rllm does. Parameters of the
 * session replace parameters of the request.
 */
@Injectable()
export class SessionSampling {
  /** Time until which no session of the pool has parameters, on the clock of `performance`. */
  private noneUntilMs = 0;

  constructor(
    private readonly trajectories: TrajectoryStore,
    private readonly config: GatewayConfig,
  ) {}

  /**
   * Sets the parameters of the session in the body of a request, and answers the request. Without a session, or while
   * no session of the pool has parameters, Redis is not called.
   * @throws BroomwagonError VALIDATION_FAILED, UNAVAILABLE if the parameters cannot be read
   */
  answer(exchange: Exchange, form: SamplingForm, run: (exchange: Exchange) => Promise<void>): Promise<void> {
    const { request, caller, body } = exchange;
    const isUnset = !namesSession(request.headers, caller, body.session_id) || performance.now() < this.noneUntilMs;
    return isUnset ? run(exchange) : this.answerSession(exchange, form, run);
  }

  /**
   * Waits until no replica relies on an answer that no session has parameters.
   * @param ageMs how long ago a session of the pool got sampling parameters for the first time
   */
  async awaitReplicas(ageMs = RELIED_ON_MS): Promise<void> {
    if (ageMs < RELIED_ON_MS) await delay(RELIED_ON_MS - ageMs);
  }

  private async answerSession(
    exchange: Exchange,
    form: SamplingForm,
    run: (exchange: Exchange) => Promise<void>,
  ): Promise<void> {
    const { request, caller, body } = exchange;
    const session = parseSession(request.headers, caller, body.session_id ?? undefined);
    const parameters = session === undefined ? undefined : await this.read(session, caller.tokenId);
    if (parameters === undefined) return run(exchange);
    return run({ ...exchange, body: setSampling(body, parameters, form) });
  }

  private read(session: string, tokenId: string): Promise<Fields | undefined> {
    const { pool, noServerDeadlineMs } = this.config;
    const read = async () => {
      const beganMs = performance.now();
      const { sampling, isUsed } = await this.trajectories.sampling(pool, { id: toTrajectoryId(session), tokenId });
      if (!isUsed) this.noneUntilMs = beganMs + RELIED_ON_MS;
      return sampling;
    };
    // A request waits until the parameters of its session are read, because its response depends on the parameters.
    return withRetry(read, { deadlineMs: noServerDeadlineMs });
  }
}

function setSampling(body: Fields, parameters: Fields, { parent, names = {} }: SamplingForm): Fields {
  const nameOf = new Map(Object.entries(names));
  const named = Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [nameOf.get(name) ?? name, value]),
  );
  const set = (fields: unknown): unknown => {
    // The route refuses a wrong value.
    if (fields !== undefined && fields !== null && !isObject(fields)) return fields;
    const all = Object.assign({}, fields, named);
    // `max_completion_tokens` would take precedence over the `max_tokens` of the session.
    if (parameters.max_tokens !== undefined) delete all.max_completion_tokens;
    return all;
  };
  if (parent === undefined) return set(body) as Fields;
  const { [parent]: given } = body;
  return Object.assign({}, body, { [parent]: Array.isArray(given) ? given.map(set) : set(given) });
}
