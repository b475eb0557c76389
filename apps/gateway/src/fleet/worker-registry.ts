import { Injectable } from '@nestjs/common';
import { BroomwagonError, invalidField, isBroomwagonError } from '@broomwagon/contracts';
import { createEngineAdapter, EngineAccess, normalizeBaseUrl, readRegistration } from '@broomwagon/engines';
import { ControlPlane } from '@broomwagon/generation';
import { GatewayConfig } from '../gateway.config';
import { poolServers } from './pool-servers';

/** Adds engines to the pool, and removes them. Requests are sent to each added address. */
@Injectable()
export class WorkerRegistry {
  private readonly access: EngineAccess;

  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly config: GatewayConfig,
  ) {
    this.access = new EngineAccess(config.engineAllowList);
  }

  /**
   * Registers the engine at `url` after the engine has described itself and answered its health route: trainers send
   * requests as soon as they have the answer. As for load-balancer, a refusal is an answer.
   * @throws BroomwagonError VALIDATION_FAILED, ENGINE_UNREACHABLE, ENGINE_PROTOCOL, ENGINE_ERROR, and the errors of
   *   `server.register`
   */
  async register(url: unknown): Promise<{ serverId: string; endpoint: string }> {
    const options = { apiKey: this.config.findEngineKey(this.config.pool), access: this.access };
    const registration = await readRegistration(toBaseUrl(url), options);
    const adapter = createEngineAdapter(registration.dialect, registration.endpoint, options);
    await adapter.health().catch((error: unknown) => {
      if (!isBroomwagonError(error, 'ENGINE_REJECTED')) throw error;
    });
    const maxInflight = this.config.engineMaxInflight;
    await this.controlPlane.call('server.register', { ...registration, maxInflight });
    return registration;
  }

  /** @returns the id @throws BroomwagonError SERVER_NOT_FOUND */
  async remove(idOrUrl: string): Promise<string> {
    const url = /^https?:\/\//i.test(idOrUrl) ? normalizeBaseUrl(idOrUrl) : undefined;
    const server = (await poolServers(this.controlPlane)).find(
      ({ serverId, endpoint }) => serverId === idOrUrl || endpoint === url,
    );
    if (server === undefined) throw new BroomwagonError('SERVER_NOT_FOUND', 'The pool has no such worker');
    await this.controlPlane.call('server.remove', { serverId: server.serverId });
    return server.serverId;
  }
}

/** A normalized URL. @throws BroomwagonError VALIDATION_FAILED */
export function toBaseUrl(url: unknown): string {
  if (typeof url !== 'string' || !URL.canParse(url)) throw invalidField('url', 'must be a URL with http or https');
  try {
    return normalizeBaseUrl(url);
  } catch (error) {
    throw isBroomwagonError(error) ? invalidField('url', error.message.replace(/^endpoint: /, '')) : error;
  }
}
