import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { BroomwagonError, includesRole, type Route } from '@broomwagon/contracts';
import type { Request } from 'express';
import { RateLimits } from '../http/rate-limits';
import { Authenticator } from './authenticator';
import type { Identity } from './identity';
import { Refusals } from './refusals';

const BEARER = /^Bearer ([\x21-\x7e]{1,4096})$/i;
/** Decorator that sets the {@link Route} of a handler. */
export const RouteOf = Reflector.createDecorator<Route>();

const identities = new WeakMap<Request, Identity>();

/** Identity of the caller of a request that the guard has let pass. */
export function getIdentity(request: Request): Identity {
  return identities.get(request)!;
}

/** The bearer token of a request; undefined if the request has no bearer token. */
export function readBearerToken(request: Request): string | undefined {
  return BEARER.exec(request.get('Authorization') ?? '')?.[1];
}

/** Refuses a request, before its body is read, if its token lacks the role or the pool of the route. */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly authenticator: Authenticator,
    private readonly limits: RateLimits,
    private readonly refusals: Refusals,
  ) {}

  /** @throws BroomwagonError RATE_LIMITED, UNAUTHENTICATED, FORBIDDEN, UNAVAILABLE */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>();
    const route = this.reflector.get(RouteOf, context.getHandler());
    let identity: Identity | undefined;
    try {
      identity = await this.identify(request);
      await this.limits.takeOfToken(identity.id);
      checkRights(identity, route, request);
    } catch (error) {
      await this.refusals.add({ route, request, error, identity });
      throw error;
    }
    identities.set(request, identity);
    return true;
  }

  private async identify(request: Request): Promise<Identity> {
    const token = readBearerToken(request);
    const identity = token === undefined ? undefined : await this.authenticator.identify(token);
    if (identity !== undefined) return identity;
    throw new BroomwagonError('UNAUTHENTICATED', 'Send a valid token as Authorization: Bearer TOKEN');
  }
}

function checkRights(identity: Identity, { role, operation }: Route, request: Request): void {
  // A read of the audit log names its pool in the query, or reads all pools.
  const { pool } = (operation === 'audit-log.list' ? request.query : request.params) as { pool?: string };
  if (!includesRole(identity.role, role)) {
    throw new BroomwagonError('FORBIDDEN', `This needs the role ${role}; the token has the role ${identity.role}`);
  }
  if (pool !== undefined && identity.pools !== undefined && !identity.pools.includes(pool)) {
    throw new BroomwagonError('FORBIDDEN', 'The token is not for this pool');
  }
  if (pool === undefined && role !== 'viewer' && identity.pools !== undefined) {
    throw new BroomwagonError(
      'FORBIDDEN',
      'This needs a token for all pools; the audit log of one pool is at ?pool=POOL',
    );
  }
}
