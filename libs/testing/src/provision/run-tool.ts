import { execFile } from 'node:child_process';

export interface ToolResult {
  ok: boolean;
  output: string;
  /** Standard error, or why the tool could not run. */
  complaint: string;
}

/** Runs a program to its end, with messages in plain English; a failure is a result, not an exception. */
export function runTool(
  file: string,
  toolArguments: readonly string[],
  options: { timeoutMs: number; environment?: Record<string, string>; folder?: string },
): Promise<ToolResult> {
  return new Promise((resolve) => {
    execFile(
      file,
      [...toolArguments],
      {
        timeout: options.timeoutMs,
        killSignal: 'SIGKILL',
        maxBuffer: 64 * 1024 * 1024,
        cwd: options.folder,
        env: { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive', ...options.environment },
      },
      (error, output, errorOutput) => {
        const complaint = error === null ? errorOutput.trim() : errorOutput.trim() || error.message;
        resolve({ ok: error === null, output, complaint });
      },
    );
  });
}
