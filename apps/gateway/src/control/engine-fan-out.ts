import { Injectable } from '@nestjs/common';
import { BroomwagonError, isBroomwagonError, isObject, type ServerStatus } from '@broomwagon/contracts';
import type { ForwardedCall } from '@broomwagon/engines';
import { ControlPlane, EngineAdapters } from '@broomwagon/generation';
import { splitPages } from '@broomwagon/state';
import { poolServers } from '../fleet/pool-servers';
import { GatewayConfig } from '../gateway.config';
import { isCount } from '../fields/read-fields';
import type { ControlCall } from './control-table';
import type { EngineAnswer } from './engine-answer';
import { bodiesWithRanks } from './rank-offsets';

/** Maximum engines called at the same time, unless the engines wait for each other. */
const ENGINES_AT_ONCE = 64;

/** A call that a client sent for all engines. */
export interface SentCall {
  /** Path with its query. */
  path: string;
  bytes: Buffer;
  body: Record<string, unknown>;
}

/** Makes one call at all engines of the pool. An engine that fails does not end the calls of the others. */
@Injectable()
export class EngineFanOut {
  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly engines: EngineAdapters,
    private readonly config: GatewayConfig,
  ) {}

  /** Servers whose engines have the call. @throws BroomwagonError NO_SERVER_AVAILABLE: no engine can be called */
  async serversFor({ dialects }: ControlCall): Promise<ServerStatus[]> {
    const servers = (await poolServers(this.controlPlane)).filter(({ dialect }) => dialects.includes(dialect));
    if (!servers.every(isAway)) return servers;
    const message = `The pool has no ${dialects.join(' or ')} engine that could be called`;
    throw new BroomwagonError('NO_SERVER_AVAILABLE', message);
  }

  /**
   * @returns an answer for each engine, in the order of the server ids
   * @throws BroomwagonError NO_SERVER_AVAILABLE; VALIDATION_FAILED or ENGINE_PROTOCOL if the ranks do not fit
   */
  async call(call: ControlCall, sent: SentCall): Promise<EngineAnswer[]> {
    const servers = await this.serversFor(call);
    const called = servers.filter((server) => !isAway(server));
    called.sort((a, b) => (a.serverId < b.serverId ? -1 : 1));
    const { method, ranks, defaults } = call;
    const askWorldSize = (server: ServerStatus) => this.readWorldSize(server);
    const bodies = ranks && (await bodiesWithRanks(ranks, sent.body, called, askWorldSize));
    const answers: EngineAnswer[] = [];
    const size = call.isCollective ? called.length : ENGINES_AT_ONCE;
    for (const page of splitPages([...called.entries()], size)) {
      const calls = page.map(([position, server]) => {
        const bytes = bodies?.[position] ?? withDefaults(sent, defaults?.[server.dialect]);
        return this.callOne(server, { method, path: sent.path, body: bytes.length === 0 ? undefined : bytes });
      });
      answers.push(...(await Promise.all(calls)));
    }
    return [...answers, ...servers.filter(isAway).map((server) => ({ server, isSkipped: true }))];
  }

  /** Calls one engine. An error becomes an answer: the method never throws. */
  private async callOne(server: ServerStatus, call: Omit<ForwardedCall, 'timeoutMs'>): Promise<EngineAnswer> {
    const timeoutMs = this.config.controlTimeoutMs;
    try {
      const { status, text } = await this.engines.of(server).forward({ ...call, timeoutMs });
      return { server, status, body: parsed(text) };
    } catch (error) {
      const { code, message, retryable } = isBroomwagonError(error)
        ? error
        : new BroomwagonError('INTERNAL', 'The call failed; see the log');
      return { server, error: { code, message, retryable } };
    }
  }

  /**
   * Number of processes of an engine; undefined without a report, or if one pipeline has several ranks.
   * @throws BroomwagonError ENGINE_PROTOCOL
   */
  private async readWorldSize(server: ServerStatus): Promise<number | undefined> {
    const path = server.dialect === 'vllm' ? '/get_world_size' : '/get_server_info';
    const { status, body } = await this.callOne(server, { method: 'GET', path });
    if (status !== 200) return undefined;
    if (!isObject(body)) {
      throw new BroomwagonError('ENGINE_PROTOCOL', `${server.endpoint} answered ${path} without an object`);
    }
    const { world_size: worldSize, tp_size: ranks, pp_size: stages = 1 } = body;
    const size = server.dialect === 'vllm' ? worldSize : stages === 1 && ranks;
    return isCount(size, 1, Number.MAX_SAFE_INTEGER) ? (size as number) : undefined;
  }
}

/**
 * The body with further fields at its beginning. All other bytes stay as they arrived: a parse would change large
 * numbers.
 */
function withDefaults({ bytes, body }: SentCall, defaults: Record<string, unknown> = {}): Buffer {
  const added = Object.entries(defaults).filter(([name]) => !Object.hasOwn(body, name));
  if (added.length === 0) return bytes;
  const fields = JSON.stringify(Object.fromEntries(added)).slice(0, -1);
  if (Object.keys(body).length === 0) return Buffer.from(`${fields}}`);
  return Buffer.from(bytes.toString('utf8').replace('{', () => `${fields},`));
}

function isAway({ state }: ServerStatus): boolean {
  return state === 'failed' || state === 'removed';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
