import { Command, Redis, type RedisOptions } from 'ioredis';
import { gatherWrites } from './gather-writes';

/** Event of a connection, with the error and the time in milliseconds: a command got no answer in this time. */
export const UNANSWERED = 'unanswered';

/** Limits the time of a command, and emits {@link UNANSWERED} when the time is over. */
export function limitTime(
  command: Command,
  timeoutMs: number,
  emit: (event: string, error: Error, timeoutMs: number) => unknown,
): void {
  const { reject } = command;
  command.reject = (error: Error) => {
    if (error.message === 'Command timed out')
      emit(UNANSWERED, new Error(`${command.name} timed out after ${timeoutMs} ms`), timeoutMs);
    reject(error);
  };
  command.setTimeout(timeoutMs);
}

/**
 * A connection to one server with two time limits: `commandTimeout` of the options for commands that open a connection,
 * and a shorter limit for all other commands, because callers wait for these.
 */
export class BoundedRedis extends Redis {
  /**
   * @param timeoutMs a command without an answer for this long fails, milliseconds
   * @param url address; undefined if the options name the server
   */
  constructor(
    private readonly timeoutMs: number,
    options: Omit<RedisOptions, 'replyMapping'>,
    url?: string,
  ) {
    // ioredis takes an address that is undefined as none.
    super(url!, options);
  }

  override sendCommand(...[command, stream]: Parameters<Redis['sendCommand']>): unknown {
    const opensConnection = this.status === 'connect' && Command.checkFlag('HANDSHAKE_COMMANDS', command.name);
    // The limit of the options, which ioredis sets next, changes nothing for a command that has a limit.
    if (!opensConnection) limitTime(command, this.timeoutMs, (...event) => this.emit(...event));
    gatherWrites(this);
    return super.sendCommand(command, stream);
  }
}
