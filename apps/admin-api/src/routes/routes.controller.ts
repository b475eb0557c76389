import { Controller, Req, RequestMapping, RequestMethod, Res, UseGuards } from '@nestjs/common';
import { API_ROOT, encodePathId, type Route, ROUTES } from '@broomwagon/contracts';
import { writePart } from '@broomwagon/platform';
import type { Request, Response } from 'express';
import type { Identity } from '../auth/identity';
import { AccessGuard, getIdentity, RouteOf } from '../auth/access.guard';
import { ChangesService } from '../changes/changes.service';
import { EventFeed } from '../events/event-feed';
import { OperationCaller } from '../operations/operation-caller';
import { type RequestFields, readFields } from '../http/request-fields';
import { RequestTraces } from '../http/request-traces';
import { getRequestId } from '../http/request-id';

/** Time without a read after which the caller of an export is cut off, milliseconds. */
const STALLED_MS = 30_000;

/** All routes of the table ROUTES. The code below adds a method for each route to this class. */
@Controller(API_ROOT.slice(1))
@UseGuards(AccessGuard)
export class RoutesController {
  constructor(
    private readonly operations: OperationCaller,
    private readonly changes: ChangesService,
    private readonly events: EventFeed,
    private readonly traces: RequestTraces,
  ) {}

  async answer(route: Route, request: Request, response: Response): Promise<void> {
    const identity = getIdentity(request);
    const fields = await readFields(route, request, identity.id);
    await this.traces.run(route, fields, request, () => this.answerWith(route, fields, identity, request, response));
  }

  private async answerWith(
    route: Route,
    fields: RequestFields,
    identity: Identity,
    request: Request,
    response: Response,
  ): Promise<void> {
    const requestId = getRequestId(request);
    response.set({ 'X-Request-Id': requestId, 'Cache-Control': 'no-store' });
    if (route.isStream) return this.events.open(fields, request, response);
    if (route.isExport) return this.export(route, fields, identity, response);
    const { reply, isRepeat, isNew } =
      route.method === 'GET'
        ? {
            reply: await this.operations.call(route, fields.pool, fields.body, identity),
            isRepeat: false,
            isNew: false,
          }
        : await this.changes.make({ route, fields, identity, requestId, address: request.ip ?? '' });
    response.status(isNew ? 201 : 200);
    if (isNew) response.set('Location', buildLocation(route, { pool: fields.pool, ...fields.body, ...reply }));
    if (isRepeat) response.set('Idempotency-Replayed', 'true');
    if (route.versionField) response.set('ETag', `"${(reply as { version: number }).version}"`);
    const { cursor } = reply as { cursor?: string | number };
    if (route.method === 'GET' && cursor !== undefined) {
      const next = new URL(request.originalUrl, 'http://localhost');
      next.searchParams.set('cursor', String(cursor));
      response.set('Link', `<${next.pathname}${next.search}>; rel="next"`);
    }
    response.json(reply);
  }

  /** Writes all pages of a list, one entry per line, as fast as the caller reads. */
  private async export(route: Route, { pool, body }: RequestFields, identity: Identity, response: Response) {
    let cursor: unknown;
    do {
      const asked = cursor === undefined ? body : { ...body, cursor };
      const page = await this.operations.call(route, pool, asked, identity);
      const entries = Object.values(page).find((value) => Array.isArray(value)) as object[];
      if (response.destroyed) return;
      if (!response.headersSent) response.status(200).type('application/x-ndjson');
      const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
      if (!(await writePart(response, lines, STALLED_MS))) return;
      ({ cursor } = page as { cursor?: unknown });
    } while (cursor !== undefined);
    response.end();
  }
}

/** Path of the object that a request has created. */
function buildLocation({ creates }: Route, fields: Record<string, unknown>): string {
  return API_ROOT + creates!.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodePathId(String(fields[name])));
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
