import { spawnSync } from 'node:child_process';
import { cannotRun } from '../../scripts/prepare.mjs';

/** The Go compiler: named in GO, on PATH, or where its archive is unpacked. Ends the process if there is none. */
export function findGo(purpose) {
  const places = [process.env.GO, 'go', '/usr/local/go/bin/go'].filter(Boolean);
  const go = places.find((place) => spawnSync(place, ['version']).status === 0);
  if (go !== undefined) return go;
  return cannotRun(`${purpose} and needs Go 1.24 or later: on PATH, or named in GO`);
}
