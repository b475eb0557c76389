import { dirname, join } from 'node:path';
import type { CopyResult } from './copy-folder';
import { privateCopies } from './private-copy';
import { findOnPath } from './server-binary';
import { PROGRAMS, type ProgramKind } from './server-kind';

/** Paths of Prometheus and of its promtool, or the reason why this machine has none. */
export type FoundPrometheus = { prometheus: string; promtool: string } | { reason: string };

/** Finds a program on PATH, else makes a private copy. */
export async function findProgram(kind: ProgramKind, say: (line: string) => void): Promise<CopyResult> {
  const installed = await findOnPath(kind);
  if ('path' in installed) return installed;
  const copy = (await privateCopies([kind], say)).get(kind)!;
  return 'path' in copy ? copy : { reason: `${PROGRAMS[kind].label} is not on PATH, and ${copy.reason}` };
}

export async function findPrometheus(say: (line: string) => void): Promise<FoundPrometheus> {
  const found = await findProgram('prometheus', say);
  if ('reason' in found) return found;
  return { prometheus: found.path, promtool: join(dirname(found.path), 'promtool') };
}
