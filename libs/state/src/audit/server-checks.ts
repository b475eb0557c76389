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
  /** Absent for a server in slow start. */
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
    return compareServer(server, id);
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

function compareServer(server: ServerView, where: string): Discrepancy[] {
  const { state, load, score, hasRoom } = server;
  const detail = `${state}, ${load} leases, score ${score === false ? 'none' : score}`;
  const found: Discrepancy[] = [];
  const expect = (isRight: boolean, check: string, step: string) => {
    if (!isRight) found.push({ check, where, detail, steps: [[step, where]] });
  };
  expect(server.isIndexed, 'server-index', 'index');
  expect(server.isUsable === server.isListedUsable, 'server-usable', 'publish');
  expect(hasRoom === undefined || hasRoom === (score !== false), 'server-eligible', 'publish');
  expect(server.isRightPlace, 'server-score', 'publish');
  return found;
}
