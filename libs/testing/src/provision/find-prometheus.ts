import { dirname, join } from 'node:path';
import { privateCopies } from './private-copy';
import { findOnPath } from './server-binary';

/** Paths of Prometheus and of its promtool, or the reason why this machine has none. */
export type FoundPrometheus = { prometheus: string; promtool: string } | { reason: string };

/** On PATH, else a private copy of the distribution's package. */
export async function findPrometheus(say: (line: string) => void): Promise<FoundPrometheus> {
  const installed = await findOnPath('prometheus');
  const found = 'path' in installed ? installed : (await privateCopies(['prometheus'], say)).get('prometheus')!;
  if ('reason' in found) return { reason: `Prometheus is not on PATH, and ${found.reason}` };
  return { prometheus: found.path, promtool: join(dirname(found.path), 'promtool') };
}
