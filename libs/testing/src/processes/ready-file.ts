import { readFileSync } from 'node:fs';
import type { ManagedProcess } from './managed-process';

/**
 * Environment and check for an application that chooses a free port: it reports the port by READY_FILE, and is ready
 * when `/readyz` there answers 200. Another process might take a port that the test chooses before the application
 * starts, or before it starts again.
 * @param file a separate path for each process
 */
export function readyByFile(file: string): {
  environment: Record<string, string>;
  ready: (process: ManagedProcess) => Promise<boolean>;
} {
  return {
    environment: { HTTP_PORT: '0', READY_FILE: file },
    ready: async (process) => {
      const { port, pid } = JSON.parse(readFileSync(file, 'utf8')) as { port: number; pid: number };
      // The file of a run before this one stays until it is written again.
      if (pid !== process.pid) return false;
      const response = await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(2_000) });
      await response.body?.cancel();
      return response.status === 200;
    },
  };
}
