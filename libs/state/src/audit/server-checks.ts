import type { Discrepancy, PoolLook, Step } from './pool-look';

/** A server as transitions see it, with its entries in the indexes; see audit/views.lua. */
interface ServerView {
  load: number;
  state: string;
  /** Score in the index of servers with room. */
  score: string | false;
  isUsable: boolean;
  isListedUsable: boolean;
  isRightPlace: boolean;
  isIndexed: boolean;
  /** The indexes follow the settings and weights of the pool. */
  isScored: boolean;
  /** Whether the server has room for a lease; absent for a server in slow start. */
  hasRoom?: boolean;
}

const SORTED_INDEXES = ['servers', 'eligible', 'watchedServers', 'drainingServers', 'warmingServers'];

/**
 * Checks the servers against the indexes of usable servers and of servers with room, and the indexes against the
 * servers. @returns leases by server
 */
export async function checkServers(look: PoolLook): Promise<Map<string, number>> {
  const loads = new Map<string, number>();
  await look.checkEach<ServerView>(look.names('servers', 'ZSCAN'), 'server', (id, server) => {
    loads.set(id, server.load);
    const { found, isUnproven } = compareServer(server, id);
    if (isUnproven) look.unproven.push(`place of server ${id}`);
    return found;
  });
  const detail = 'names a missing server';
  const reads = (id: string) => [['HEXISTS', 'serverRecords', id] as const];
  const check = 'index-without-server';
  const isRight = ([isThere]: unknown[]) => isThere === 1;
  for (const index of SORTED_INDEXES) await look.checkIndex(index, 'ZSCAN', check, isRight, { reads, detail });
  await look.checkIndex('usableServers', 'SSCAN', check, isRight, { reads, detail });
  const remove = (id: string): Step[] => [['index', id]];
  await look.checkIndex('serverIndexEntries', 'HSCAN', check, isRight, { reads, detail, remove });
  return loads;
}

/** @returns `isUnproven`: the server is not where the settings want it, and the load-balancer has yet to move it */
function compareServer(server: ServerView, where: string): { found: Discrepancy[]; isUnproven: boolean } {
  const { state, load, score, hasRoom, isScored } = server;
  const detail = `${state}, ${load} leases, score ${score === false ? 'none' : score}`;
  const misplaced: Discrepancy[] = [];
  const expect = (isRight: boolean, check: string) => {
    if (!isRight) misplaced.push({ check, where, detail, steps: [['publish', where]] });
  };
  expect(server.isUsable === server.isListedUsable, 'server-usable');
  expect(hasRoom === undefined || hasRoom === (score !== false), 'server-eligible');
  expect(server.isRightPlace, 'server-score');
  const found = isScored ? misplaced : [];
  if (!server.isIndexed) found.push({ check: 'server-index', where, detail, steps: [['index', where]] });
  return { found, isUnproven: !isScored && misplaced.length > 0 };
}
