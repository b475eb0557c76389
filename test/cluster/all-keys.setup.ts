import { Cluster } from 'ioredis';

/** KEYS asks one node; tests mean all of them. */
Cluster.prototype.keys = async function keys(this: Cluster, pattern: string) {
  return (await Promise.all(this.nodes('master').map((node) => node.keys(pattern)))).flat();
} as Cluster['keys'];
