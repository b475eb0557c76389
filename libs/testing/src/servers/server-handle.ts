import type { ManagedProcess } from '../processes/managed-process';
import type { Credentials } from '../provision/credentials';
import type { ServerSource } from '../provision/find-servers';
import type { ServerKind } from '../provision/server-kind';

/** A NATS or Redis server, started by us or given by its address. */
export interface ServerHandle {
  readonly kind: ServerKind;
  /** Address for clients, with user and password where there are any. */
  readonly url: string;
  readonly port: number;
  /** Process id; undefined for a given server and for a server in a container. */
  readonly pid: number | undefined;
  readonly source: ServerSource;
  /** The process, where we started one: a given server and one in a container have none here. */
  readonly process?: ManagedProcess;
  /** Settings with which a program connects: as this user, where the server has the users of `deploy`. */
  getSettings(user: string): Record<string, string>;
  /** One line for people: which server this is and where it came from. */
  readonly description: string;
  /** Whether it answers now; rejects or answers false when it does not. */
  answers(): Promise<boolean>;
  /** Ends the server and removes its folder (unless `keepFolder`). A given server is left alone. */
  stop(): Promise<void>;
  /** SIGKILL, as a crash: the data stay for `restart()`. */
  kill(): Promise<void>;
  /** Starts it again on the same port with the same data, after `kill()` or while it runs (an orderly restart). */
  restart(): Promise<void>;
  /** SIGSTOP: connected and silent. */
  pause(): Promise<void>;
  /** SIGCONT. */
  resume(): Promise<void>;
}

/** Options of both servers. */
export interface ServerOptions {
  /** Default: a free one. */
  port?: number;
  user?: string;
  password?: string;
  /** Starts it with the users of `deploy`; the address of the handle is the address of the user `admin`. */
  credentials?: Credentials;
  /** Further lines of the server's configuration file. */
  configuration?: string;
  /** Where data, configuration and log lie. Default: a new folder under the system's temporary one. */
  folder?: string;
  /** Leaves the folder in place after `stop()`. */
  keepFolder?: boolean;
  /** Default 15,000 ms. */
  readyTimeoutMs?: number;
}
