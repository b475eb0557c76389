import { BroomwagonError } from '@broomwagon/contracts';
import type { EngineHttp } from '../http/engine-http';
import { quote } from '../http/refusal';

/** Statuses of an engine without the route. Other statuses may refuse a call, but not because of the route. */
export const NO_ROUTE: ReadonlySet<number> = new Set([404, 405, 410, 501]);
/** Status of a route that a flag of the engine has disabled; a wrong key is 401. */
export const ROUTE_DISABLED = 403;

/** Which routes an engine has. Its dialect must be known: a server of web pages answers anything. */
export class EngineRoutes {
  constructor(private readonly http: EngineHttp) {}

  /**
   * Checks whether a route exists, without using it: a route for another method answers 405, a missing route 404.
   */
  async has(path: string, signal?: AbortSignal): Promise<boolean> {
    const { status } = await this.http.call('OPTIONS', path, undefined, signal);
    return status !== 404;
  }

  /**
   * Checks whether a route exists and is enabled, by a call with this body, which must change nothing: a route that a
   * flag has disabled answers 403 (vLLM 0.32.0 without `--enable-scale-out`), but 405 to `OPTIONS` as if it were there.
   */
  async isEnabled(path: string, body: object, signal?: AbortSignal): Promise<boolean> {
    if (!(await this.has(path, signal))) return false;
    const { status } = await this.http.call('POST', path, body, signal);
    return !NO_ROUTE.has(status) && status !== ROUTE_DISABLED;
  }

  /**
   * Aborts requests by this route.
   * @returns false without such a route, or if it is disabled
   * @throws BroomwagonError ENGINE_ERROR and others: the call may be lost
   */
  async abort(path: string, body: object): Promise<boolean> {
    const { status, text } = await this.http.call('POST', path, body);
    if (status >= 200 && status < 300) return true;
    if (NO_ROUTE.has(status) || status === ROUTE_DISABLED) return false;
    throw new BroomwagonError('ENGINE_ERROR', `${this.http.baseUrl}${path} answered ${status}: ${quote(text)}`);
  }
}
