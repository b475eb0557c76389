import { PassThrough, Writable } from 'node:stream';
import { run } from '../../apps/cli/src/program';

/** Exit code and output of a command. */
export interface CommandResult {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** Runs commands of the command line in this process. */
export class CommandLine {
  constructor(private readonly options: readonly string[]) {}

  /** @param answer is typed in a terminal; undefined: there is no terminal */
  async run(command: string | readonly string[], answer?: string): Promise<CommandResult> {
    const stdin = Object.assign(new PassThrough(), { isTTY: answer !== undefined });
    if (answer !== undefined) stdin.end(`${answer}\n`);
    const [stdout, stderr] = [new TextSink(), new TextSink()];
    const words = typeof command === 'string' ? command.split(' ') : command;
    const exitCode = await run([...words, ...this.options], { stdin, stdout, stderr });
    return { exitCode, stdout: stdout.text, stderr: stderr.text };
  }

  /** The JSON that a command prints. @throws Error if it fails */
  async json(command: string | readonly string[]) {
    const words = typeof command === 'string' ? command.split(' ') : command;
    const { exitCode, stdout, stderr } = await this.run([...words, '--json', '--yes']);
    if (exitCode !== 0) throw new Error(`exit code ${exitCode}: ${stderr}`);
    // oxlint-disable-next-line typescript/no-explicit-any
    return JSON.parse(stdout) as any;
  }
}

class TextSink extends Writable {
  text = '';

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}
