import { FAULT_KINDS, type FaultKind } from '../engine/faults';
import type { SimulatedEngine } from '../engine/simulated-engine';
import type { SampleIdentities } from '../tokens/sample-identity';
import type { ZooSelection } from '../zoo/active-zoo';
import { RefusedError, sendJson } from './answers';
import { readObject, wholeNumber } from './request-body';
import type { Route } from './route';

interface Controls {
  status: () => Record<string, unknown>;
  /**
   * @returns function that closes the connections, if the engine was restarted
   * @throws RangeError for an unknown behaviour
   */
  select: (selection: ZooSelection) => (() => void) | undefined;
}

/** Routes that no engine has: state, faults and behaviours for tests. */
export function simulatorRoutes(
  engine: SimulatedEngine,
  identities: SampleIdentities,
  { status, select }: Controls,
): Record<string, Route> {
  const { serverId } = engine.options;
  return {
    'GET /simulator/state': (_, response) =>
      sendJson(response, 200, {
        serverId,
        instanceId: engine.instanceId,
        speed: engine.speed,
        ...engine.load,
        resumeMismatches: identities.resumeMismatches,
        table: engine.table,
        controls: engine.controls,
        sessions: engine.sessions,
        ...status(),
      }),
    'POST /simulator/reset': async (request, response) => {
      await readObject(request);
      engine.reset();
      identities.reset();
      sendJson(response, 200, { reset: true });
    },
    'POST /simulator/speed': async (request, response) => {
      const { speed } = await readObject(request);
      if (typeof speed !== 'number' || !(speed > 0)) throw new RefusedError(400, 'speed must be a number above 0');
      engine.setSpeed(speed);
      sendJson(response, 200, { accepted: true });
    },
    'POST /simulator/fault': async (request, response) => {
      const body = await readObject(request);
      if (!FAULT_KINDS.includes(body.kind as FaultKind)) {
        throw new RefusedError(400, `kind must be one of ${FAULT_KINDS.join(', ')}`);
      }
      engine.faults.add({
        kind: body.kind as FaultKind,
        count: wholeNumber(body, 'count', 1) ?? 1,
        afterTokens: wholeNumber(body, 'afterTokens', 0) ?? 1,
      });
      sendJson(response, 200, { accepted: true });
    },
    'POST /simulator/zoo': async (request, response) => {
      const body = await readObject(request);
      const [entries, later] = [namesIn(body.entries), namesIn(body.later ?? [])];
      const [at, standsAt] = [wholeNumber(body, 'at', 0), wholeNumber(body, 'standsAt', 0)];
      const closeConnections = select({ entries, later, at, standsAt, count: wholeNumber(body, 'count', 1) });
      if (closeConnections) response.on('finish', closeConnections);
      sendJson(response, 200, { accepted: true });
    },
  };
}

/** Reads a list of texts. Throws RefusedError 400 for anything else. */
function namesIn(list: unknown): string[] {
  if (Array.isArray(list) && list.every((name) => typeof name === 'string')) return list;
  throw new RefusedError(400, 'entries and later must be names of behaviours');
}
