import type { ServerStatus } from '@broomwagon/contracts';
import type { ControlPlane } from '@broomwagon/generation';

/** All servers of the pool. @throws BroomwagonError UNAVAILABLE */
export async function poolServers(controlPlane: ControlPlane): Promise<ServerStatus[]> {
  const all: ServerStatus[] = [];
  let cursor: string | undefined;
  do {
    const page = await controlPlane.call('server.list', { cursor });
    all.push(...page.servers);
    ({ cursor } = page);
  } while (cursor !== undefined);
  return all;
}
