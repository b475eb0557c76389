import { Command, Redis, type RedisOptions } from 'ioredis';
import { gatherWrites } from './gather-writes';

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
    if (!opensConnection) command.setTimeout(this.timeoutMs);
    gatherWrites(this);
    return super.sendCommand(command, stream);
  }
}
