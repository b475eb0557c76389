import { type AdminClient, readData, iteratePages, type Schemas } from '@broomwagon/admin-client';

export type Server = Schemas['ServerStatus'];

const byId = new Intl.Collator('en', { numeric: true });

/** All servers of a pool, sorted by id. */
export async function readServers(client: AdminClient, pool: string, signal: AbortSignal): Promise<Server[]> {
  const servers: Server[] = [];
  const read = (cursor?: string) => {
    const params = { path: { pool }, query: { cursor } };
    return readData(client.GET('/api/v1/pools/{pool}/servers', { params, signal }));
  };
  for await (const page of iteratePages(read)) servers.push(...page.servers);
  return servers.sort((one, other) => byId.compare(one.serverId, other.serverId));
}
