import { Controller, Req, RequestMapping, RequestMethod, Res, UseGuards } from '@nestjs/common';
import { API_ROOT, type Route, ROUTES } from '@broomwagon/contracts';
import type { Request, Response } from 'express';
import { AccessGuard, identityOf, RouteOf } from '../auth/access.guard';
import { OperationCaller } from '../operations/operation-caller';
import { readFields } from './request-fields';
import { requestIdOf } from './request-id';

/** All routes of the table ROUTES; each gets a method of this class below. */
@Controller(API_ROOT.slice(1))
@UseGuards(AccessGuard)
export class RoutesController {
  constructor(readonly operations: OperationCaller) {}

  async answer(route: Route, request: Request, response: Response): Promise<void> {
    const { pool, body } = await readFields(route, request);
    const reply = await this.operations.call(route, pool, body, identityOf(request));
    const { cursor } = reply as { cursor?: string | number };
    if (route.method === 'GET' && cursor !== undefined) {
      const next = new URL(request.originalUrl, 'http://localhost');
      next.searchParams.set('cursor', String(cursor));
      response.set('Link', `<${next.pathname}${next.search}>; rel="next"`);
    }
    response
      .status(200)
      .set({ 'X-Request-Id': requestIdOf(request), 'Cache-Control': 'no-store' })
      .json(reply);
  }
}

type Handler = (this: RoutesController, request: Request, response: Response) => Promise<void>;
const methods = RoutesController.prototype as unknown as Record<string, Handler>;

for (const route of ROUTES) {
  const name = `${route.method} ${route.path}`;
  methods[name] = function (request, response) {
    return this.answer(route, request, response);
  };
  const descriptor = Object.getOwnPropertyDescriptor(methods, name)!;
  const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1');
  RequestMapping({ path, method: RequestMethod[route.method] })(methods, name, descriptor);
  RouteOf(route)(methods, name, descriptor);
  Req()(methods, name, 0);
  Res()(methods, name, 1);
}
