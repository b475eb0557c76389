/** The two servers that Broomwagon stands on. */
export type ServerKind = 'nats' | 'redis';

/** A program of the tests. Tests that need Prometheus or Valkey are skipped where there is none. */
export type ProgramKind = ServerKind | 'prometheus' | 'valkey';

export interface ProgramDetails {
  readonly label: string;
  /** Names of the executable, the better one first. */
  readonly binaries: readonly string[];
  /** The oldest version on which all of our programs work. */
  readonly minimumVersion: readonly [major: number, minor: number];
  /** Debian packages that together hold the executable; the first list that the distribution has is taken. */
  readonly debianPackages: readonly (readonly string[])[];
  /** C libraries for systems on which apt's own resolver refuses (broken or held packages). */
  readonly debianLibraries: readonly string[];
}

export interface ServerKindDetails extends ProgramDetails {
  /** Names the address of a server that is already there. */
  readonly urlVariable: string;
  /** Names the address for tests; goes before `urlVariable`. */
  readonly testUrlVariable: string;
  readonly composeService: string;
  readonly containerPort: number;
  /** The variable with which docker-compose.yml lets us choose the port on the host. */
  readonly hostPortVariable: string;
}

export const SERVER_KINDS: Readonly<Record<ServerKind, ServerKindDetails>> = {
  nats: {
    label: 'NATS',
    urlVariable: 'NATS_URL',
    testUrlVariable: 'TEST_NATS_URL',
    binaries: ['nats-server'],
    // JetStream as we use it; Debian 12 has 2.9.
    minimumVersion: [2, 9],
    debianPackages: [['nats-server']],
    debianLibraries: [],
    composeService: 'nats',
    containerPort: 4222,
    hostPortVariable: 'NATS_HOST_PORT',
  },
  redis: {
    label: 'Redis',
    urlVariable: 'REDIS_URL',
    testUrlVariable: 'TEST_REDIS_URL',
    binaries: ['redis-server', 'valkey-server'],
    minimumVersion: [7, 0],
    // The executable itself lies in the tools package; the server package holds a link to it.
    debianPackages: [
      ['redis-server', 'redis-tools'],
      ['valkey-server', 'valkey-tools'],
    ],
    debianLibraries: [
      'libjemalloc2',
      'liblzf1',
      'liblua5.1-0',
      'lua-cjson',
      'lua-bitop',
      'libatomic1',
      'libhiredis0.14',
      'libhiredis1.1.0',
    ],
    composeService: 'redis',
    containerPort: 6379,
    hostPortVariable: 'REDIS_HOST_PORT',
  },
};

export const PROGRAMS: Readonly<Record<ProgramKind, ProgramDetails>> = {
  ...SERVER_KINDS,
  prometheus: {
    label: 'Prometheus',
    binaries: ['prometheus'],
    minimumVersion: [2, 37],
    // Package with promtool.
    debianPackages: [['prometheus']],
    debianLibraries: [],
  },
  valkey: {
    label: 'Valkey',
    binaries: ['valkey-server'],
    minimumVersion: [7, 2],
    debianPackages: [['valkey-server', 'valkey-tools']],
    debianLibraries: SERVER_KINDS.redis.debianLibraries,
  },
};
