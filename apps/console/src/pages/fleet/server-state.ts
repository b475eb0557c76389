import type { Server } from '../../live/read-servers';

type State = Server['state'] | 'hung';

/** State of a server for people: an engine that answers probes but generates nothing is `hung`. */
export function toShownState({ state, hung }: Server): State {
  return hung && state === 'ready' ? 'hung' : state;
}

/** States in the order of their urgency, with the reason and the next step. */
const STATES: Record<State, { mark: string; reason: string; next: string }> = {
  failed: {
    mark: '×',
    reason: 'The engine does not answer, or an operator fenced or quarantined the server. Its leases have expired.',
    next: 'Check engine and network, and restart the engine. Remove the server if the engine is gone for good.',
  },
  quarantined: {
    mark: '!',
    reason: 'Its weights are not the version that the pool requires.',
    next: 'Load the right weights, or change the setting requiredWeightVersion.',
  },
  suspect: {
    mark: '?',
    reason: 'It is silent, or its last calls failed. It takes no new requests.',
    next: 'Check engine and network. It becomes ready, or failed, by itself.',
  },
  hung: {
    mark: '!',
    reason: 'Its engine answers probes, but calls get no token. It gets one call at a time.',
    next: 'Look at the log of the engine, and restart it. Its other calls continue elsewhere.',
  },
  pending: {
    mark: '…',
    reason: 'Its engine has not answered yet.',
    next: 'Wait while the engine loads. Check the address and the log of the engine if this takes long.',
  },
  draining: {
    mark: '↓',
    reason: 'An operator drains it: it takes no new requests, and is removed with its last one.',
    next: 'Wait, or undrain it.',
  },
  cordoned: {
    mark: '–',
    reason: 'An operator or discovery has taken it out of use.',
    next: 'Uncordon it when the engine may be used. The audit log names who cordoned it.',
  },
  ready: { mark: '', reason: 'It takes requests.', next: 'Nothing.' },
  removed: { mark: '', reason: 'It was removed.', next: 'Nothing.' },
};
const ORDER = Object.keys(STATES) as State[];

export function describeState(server: Server): (typeof STATES)[State] {
  const { weightsUnknown, pendingWeightVersion, withheld } = server;
  const found = STATES[toShownState(server)];
  if (weightsUnknown) {
    const next = 'Load the weights again, and report their version.';
    return { ...found, mark: '!', reason: 'Its weights are unknown, so it takes no requests.', next };
  }
  if (pendingWeightVersion !== undefined) {
    const reason = `Its engine has to empty its prefix cache before the weights ${pendingWeightVersion} count.`;
    return { ...found, mark: '!', reason, next: 'Wait: this is tried at each probe while no request runs on it.' };
  }
  if (withheld) return { ...found, reason: 'Discovery does not list its engine as ready.', next: 'Check the pod.' };
  return found;
}

/** Servers that need a person first; then by id, as in `servers`. */
export function sortByUrgency(servers: readonly Server[]): Server[] {
  const rank = (server: Server) => ORDER.indexOf(toShownState(server));
  return servers.toSorted((one, other) => rank(one) - rank(other));
}

export function isBroken(server: Server): boolean {
  return ORDER.indexOf(toShownState(server)) <= ORDER.indexOf('hung') || server.weightsUnknown === true;
}

export function computeShare({ inflight, capacity }: Server): number {
  return Math.min(1, inflight / Math.max(1, capacity));
}
