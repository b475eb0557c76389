import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';

/**
 * The shell reads from a pipe whose other end only this process holds. A line means "no longer needed"; end of file
 * means that this process is gone, however it went (exit, Ctrl-C, uncaught error, SIGKILL): then the guarded process
 * group gets SIGTERM, SIGKILL after five seconds, and its private folder is removed. SIGCONT, because a stopped
 * process does not notice SIGTERM.
 */
const END_GROUP = `
read -r line && exit 0
kill -TERM -"$1" 2>/dev/null; kill -CONT -"$1" 2>/dev/null
tries=0
while kill -0 -"$1" 2>/dev/null && [ "$tries" -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
kill -KILL -"$1" 2>/dev/null
[ -z "$2" ] || rm -rf -- "$2"
`;

const RUN_COMMAND = 'read -r line && exit 0; exec "$@" >/dev/null 2>&1';

/** Cleans up when this process dies in any way; see `guard`. */
export interface Watchdog {
  /** Forgets the guarded process, which has ended (or may live on). */
  release(): void;
}

/**
 * Guards the process group `groupId` (a child spawned with `detached: true`) until `release()`.
 *
 * Node has no equal of prctl(PR_SET_PDEATHSIG), and an exit handler does not run on SIGKILL; a pipe that the kernel
 * closes does. Without a POSIX shell (Windows) only an orderly exit of this process is covered.
 */
export function guard(groupId: number, folderToRemove = ''): Watchdog {
  if (process.platform === 'win32') {
    const end = () => process.kill(groupId);
    process.once('exit', end);
    return { release: () => process.off('exit', end) };
  }
  return watch(END_GROUP, [String(groupId), folderToRemove]);
}

/** Runs a command if this process dies before `release()`. */
export function guardWithCommand(command: readonly string[]): Watchdog {
  return process.platform === 'win32' ? { release: () => undefined } : watch(RUN_COMMAND, command);
}

function watch(script: string, shellArguments: readonly string[]): Watchdog {
  const shell: ChildProcess = spawn('/bin/sh', ['-c', script, 'broomwagon-watchdog', ...shellArguments], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // A session of its own: Ctrl-C in the terminal must not end the watchdog before it has done its work.
    detached: true,
    cwd: '/',
  });
  const pipe = shell.stdin as Socket;
  pipe.on('error', () => undefined);
  shell.on('error', () => undefined);
  shell.unref();
  pipe.unref();
  return { release: () => void pipe.end('released\n') };
}
