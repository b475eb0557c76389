import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { type AdminClient, createAdminClient, readData, iteratePages } from '@broomwagon/admin-client';
import type { Command } from 'commander';
import { CommandFailure, UsageError } from './failures';
import { printable } from './tables';

export interface Terminal {
  stdin: Readable & { isTTY?: boolean };
  /** `columns`: width of the terminal; absent for a file or a pipe. */
  stdout: Writable & { columns?: number };
  stderr: Writable;
}

export interface GlobalOptions {
  url: string;
  token?: string;
  pool?: string;
  json?: boolean;
  yes?: boolean;
  timeout: number;
}

const TOKEN = /^[\x21-\x7e]+$/;

/** One run of a command, with its calls and its output. */
export class Session {
  constructor(
    readonly options: GlobalOptions,
    private readonly terminal: Terminal,
  ) {}

  /** @throws UsageError without a token or with a wrong address */
  get client(): AdminClient {
    return this.clientFor(0);
  }

  /**
   * A client for calls that wait: its timeout is `--timeout` and `waitMs` together.
   * @throws UsageError without a token or with a wrong address
   */
  clientFor(waitMs: number): AdminClient {
    const { url, token, timeout } = this.options;
    if (!token) throw new UsageError('there is no token: set BROOMWAGON_TOKEN, or use --token');
    if (!TOKEN.test(token))
      throw new UsageError('the token has a character that no token has, such as a space or a line end');
    if (!/^https?:\/\//.test(url) || !URL.canParse(url))
      throw new UsageError(`the address must be http://... or https://..., it is ${url}`);
    return createAdminClient({ url, token, timeoutMs: timeout + waitMs });
  }

  /** The pool of `--pool`, or the only pool. @throws UsageError */
  async pool(): Promise<string> {
    if (this.options.pool !== undefined) return this.options.pool;
    const { pools } = await readData(this.client.GET('/api/v1/pools'));
    return onlyOne('pool', pools, '--pool');
  }

  /** The given job, or the only job of the pool. @throws UsageError */
  async job(pool: string, given: string | undefined): Promise<string> {
    return given ?? onlyOne('job', await this.jobs(pool), '--job');
  }

  jobs(pool: string): Promise<string[]> {
    const read = (cursor?: string) =>
      readData(this.client.GET('/api/v1/pools/{pool}/jobs', { params: { path: { pool }, query: { cursor } } }));
    return this.all(read, ({ jobs }) => jobs);
  }

  /** The entries of all pages, up to `most` entries. */
  async all<Page extends { cursor?: string | number }, Entry>(
    read: (cursor: Page['cursor']) => Promise<Page>,
    entriesOf: (page: Page) => readonly Entry[],
    most = Infinity,
  ): Promise<Entry[]> {
    const entries: Entry[] = [];
    for await (const page of iteratePages(read)) {
      entries.push(...entriesOf(page));
      if (entries.length >= most) break;
    }
    return entries.slice(0, most);
  }

  /** Prints a result: as JSON with `--json`, otherwise as text. */
  show<Result extends object>(result: Result, text: (result: Result) => string): Promise<void> {
    return this.write(`${this.options.json ? JSON.stringify(result, null, 2) : text(result)}\n`);
  }

  /** The same session with another timeout of calls, milliseconds. */
  within(timeout: number): Session {
    return new Session({ ...this.options, timeout }, this.terminal);
  }

  /** Writes to the standard output as fast as it is read, without characters that control a terminal. */
  write(text: string): Promise<void> {
    return this.writeRaw(printable(text));
  }

  /** Writes a text that has only the control characters that it needs. */
  async writeRaw(text: string): Promise<void> {
    if (!this.terminal.stdout.write(text)) await once(this.terminal.stdout, 'drain');
  }

  /**
   * Asks before a change that ends or stops work. With `--yes` there is no question.
   * @throws UsageError without a terminal, CommandFailure if the answer is not yes
   */
  async confirm(question: string): Promise<void> {
    if (this.options.yes) return;
    const { stdin, stderr } = this.terminal;
    if (!stdin.isTTY) throw new UsageError('this needs a confirmation: run it in a terminal, or add --yes');
    const prompt = createInterface({ input: stdin, output: stderr });
    try {
      // Ctrl-D and Ctrl-C close the prompt without an answer.
      const answer = await Promise.race([
        prompt.question(printable(`${question} [y/N] `)),
        once(prompt, 'close').then(() => ''),
      ]);
      if (!/^y(es)?$/i.test(answer.trim())) throw new CommandFailure('not confirmed; nothing was changed');
    } finally {
      prompt.close();
    }
  }
}

function onlyOne(what: string, names: readonly string[], option: string): string {
  const [name, ...others] = names;
  if (name === undefined) throw new UsageError(`there is no ${what}`);
  if (others.length > 0)
    throw new UsageError(`there are several ${what}s, name one with ${option}: ${names.join(', ')}`);
  return name;
}

/** Makes the handler of a command from `work`, which gets session, arguments and options. */
export type Act = <Inputs extends unknown[]>(
  work: (session: Session, ...inputs: Inputs) => Promise<void>,
) => (...inputs: [...Inputs, Command]) => Promise<void>;

export function actOn(terminal: Terminal): Act {
  return (work) =>
    (...inputs) => {
      const command = inputs.pop() as Command;
      return work(new Session(command.optsWithGlobals<GlobalOptions>(), terminal), ...(inputs as never));
    };
}
