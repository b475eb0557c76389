import { Gatherer } from '../gatherer';
import type { EngineRoutes } from './engine-routes';

/** Route for aborts by id of `--enable-scale-out` (0.32.0). The key of the engine guards it, so it is called first. */
const SCALE_OUT_PATH = '/inference/v1/abort_requests';
const DEVELOPMENT_PATH = '/abort_requests';
/** An abort of no request; an empty list would abort all. */
const NO_REQUEST = { request_ids: ['broomwagon-probe'] };
/** Maximum number of requests that one call aborts. */
const MAX_ABORTS = 256;

interface Abort {
  engineRequestId: string;
  resolve(isAborted: boolean): void;
  reject(error: unknown): void;
}

/**
 * Aborts by id on one vLLM engine. The aborts of one turn of the event loop are one call: a cut stops thousands of
 * requests at once, and a call for each would hold up the process until the deadlines of the aborts pass.
 */
export class VllmAborts {
  /** Routes that this start of the engine has, or may have; a call of a missing one removes it. */
  private paths: readonly string[] = [SCALE_OUT_PATH, DEVELOPMENT_PATH];
  private readonly gathered = new Gatherer<Abort>(MAX_ABORTS, (aborts) => void this.send(aborts));

  constructor(private readonly routes: EngineRoutes) {}

  /** Finds the routes of the engine. @returns whether it has one */
  async probe(signal?: AbortSignal): Promise<boolean> {
    const [isScaleOut, isDevelopment] = await Promise.all([
      this.routes.isEnabled(SCALE_OUT_PATH, NO_REQUEST, signal),
      this.routes.has(DEVELOPMENT_PATH, signal),
    ]);
    this.paths = [...(isScaleOut ? [SCALE_OUT_PATH] : []), ...(isDevelopment ? [DEVELOPMENT_PATH] : [])];
    return this.paths.length > 0;
  }

  /**
   * Aborts a request.
   * @returns false without a route for aborts
   * @throws BroomwagonError ENGINE_ERROR and others: the abort may be lost
   */
  abort(engineRequestId: string): Promise<boolean> {
    return new Promise((resolve, reject) => this.gathered.add({ engineRequestId, resolve, reject }));
  }

  /** Never throws. */
  private async send(aborts: readonly Abort[]): Promise<void> {
    try {
      const isAborted = await this.call(aborts.flatMap(({ engineRequestId }) => listNames(engineRequestId)));
      for (const { resolve } of aborts) resolve(isAborted);
    } catch (error) {
      for (const { reject } of aborts) reject(error);
    }
  }

  private async call(names: readonly string[]): Promise<boolean> {
    for (const path of this.paths) {
      if (await this.routes.abort(path, { request_ids: names })) return true;
      this.paths = this.paths.filter((one) => one !== path);
    }
    return false;
  }
}

/** Names of a request: vLLM puts its route before the id, and for completions the index of the prompt after it. */
function listNames(engineRequestId: string): string[] {
  const prefixed = ['chatcmpl', 'generate-tokens'].map((route) => `${route}-${engineRequestId}`);
  return [`cmpl-${engineRequestId}-0`, ...prefixed, engineRequestId];
}
