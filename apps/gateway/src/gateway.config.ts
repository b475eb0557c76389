import { isIP } from 'node:net';
import { IsIn, IsUrl, ValidateBy } from 'class-validator';
import { withLeases } from '@broomwagon/generation';
import { Env, PayloadServiceConfig } from '@broomwagon/platform';

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/;

/** Configuration of gateway. Its routes and the health routes are on HTTP_HOST and HTTP_PORT. */
export class GatewayConfig extends withLeases(PayloadServiceConfig, 'gateway') {
  /**
   * The default is the port of the router of SGLang. The port is fixed, so that clients need no other address after a
   * restart.
   */
  @Env('HTTP_PORT', 'port of the HTTP server; 0: any free port', { min: 0, max: 65_535 })
  override httpPort: number = 30_000;

  @Env('API_KEYS', 'on: every call needs a token of the credential store; off: none does, only on a loopback address')
  @IsIn(['on', 'off'])
  @IsOnOutsideLoopback()
  apiKeys: 'on' | 'off' = 'on';

  @Env('MAX_BODY_BYTES', 'maximum size of the body of a request; a larger one is answered 413', { min: 1_024 })
  maxBodyBytes: number = 67_108_864;

  @Env('BODY_TIMEOUT_MS', 'time in which a request must have arrived, its body included', { min: 1_000 })
  bodyTimeoutMs: number = 120_000;

  @Env('KEEP_ALIVE_TIMEOUT_MS', 'how long an idle connection of a client stays open', { min: 0 })
  keepAliveTimeoutMs: number = 75_000;

  @Env('SILENCE_MS', 'silence after which an answer gets white space, and a stream a comment; 0: never', {
    min: 0,
  })
  silenceMs: number = 50_000;

  @Env('REJOIN_MS', 'how long a generation with an id of its client continues after the client has disconnected', {
    min: 0,
    max: 3_600_000,
  })
  rejoinMs: number = 10_000;

  @Env('PARTIAL_SAVE_INTERVAL_MS', 'pause between two saves of the tokens of generations with an id of their client', {
    min: 10,
  })
  partialSaveIntervalMs: number = 5_000;

  @Env('MAX_GENERATIONS', 'generations at the same time; more are answered QUEUE_FULL', { min: 1 })
  maxGenerations: number = 8_192;

  @Env('MAX_ENGINE_FAILURES', 'engines that fail a generation in a row, without a token between them, that end it', {
    min: 1,
  })
  maxEngineFailures: number = 3;

  @Env(
    'ENGINE_FAILURE_DEADLINE_MS',
    'pauses, together, between calls that the same engines fail, after which a generation ends',
    { min: 0 },
  )
  engineFailureDeadlineMs: number = 20_000;

  @Env('MAX_STARTING_RESUMES', 'continued calls of one engine that wait for their first token; more wait for these', {
    min: 1,
  })
  maxStartingResumes: number = 32;

  @Env('CONTROL_TIMEOUT_MS', 'maximum duration of a call that steers one engine: pause, new weights, adapters', {
    min: 100,
  })
  controlTimeoutMs: number = 600_000;

  @Env('PAUSE_DEADLINE_MS', 'time after which a pause or a change of weights that its trainer does not end is ended', {
    min: 1_000,
    max: 3_600_000,
  })
  pauseDeadlineMs: number = 3_600_000;

  @Env('INCREMENTAL_STREAMS', 'chunks of /generate have only new tokens; default: all tokens so far, as SGLang')
  incrementalStreams: boolean = false;

  @Env(
    'STREAM_BURSTS_AFTER_MS',
    'age from which a stream gets its tokens in bursts, 100 to 200 ms apart, for half of the CPU; 0: never',
    { min: 0 },
  )
  streamBurstsAfterMs: number = 2_000;

  @Env('LISTED_WORKERS', 'what /workers lists: the gateway itself, which clients then abort on, or its engines')
  @IsIn(['gateway', 'engines'])
  listedWorkers: 'gateway' | 'engines' = 'gateway';

  @Env(
    'PUBLIC_URL',
    'address for clients, listed by /workers, default: http and Host; its name is allowed with API_KEYS=off',
  )
  @IsUrl({ require_tld: false, protocols: ['http', 'https'], require_protocol: true })
  publicUrl?: string;

  @Env(
    'PASS_REQUESTS',
    'requests that are passed to an engine as they are: unread, or all, for engines without streams',
  )
  @IsIn(['unread', 'all'])
  passRequests: 'unread' | 'all' = 'unread';

  @Env(
    'RECORD_SESSIONS',
    'sessions that are recorded: opened, those that a client has begun; path, also those that a path names',
  )
  @IsIn(['opened', 'path'])
  recordSessions: 'opened' | 'path' = 'opened';

  @Env('RECORD_MESSAGES', 'turns of chats are recorded with their messages, which count to the quota of the job')
  recordMessages: boolean = false;

  @Env('CORS_ORIGINS', 'origins whose web pages may read answers, as https://app.example; *: all, with API_KEYS=on')
  @IsOrigins()
  corsOrigins: string[] = [];

  @Env('ENGINE_MAX_INFLIGHT', 'maximum leases of an engine that is added by /workers or /add_worker', {
    min: 1,
    max: 1_000_000,
  })
  engineMaxInflight: number = 256;
}

/**
 * Requires API_KEYS=on for addresses other than loopback addresses: without keys, anybody who reaches the address could
 * use the engines.
 */
function IsOnOutsideLoopback(): PropertyDecorator {
  return ValidateBy({
    name: 'isOnOutsideLoopback',
    validator: {
      validate: (value, args) => value !== 'off' || isLoopback((args!.object as GatewayConfig).httpHost),
      defaultMessage: () => 'can be off only if HTTP_HOST is a loopback address',
    },
  });
}

/** Requires keys for all origins: otherwise any web page in a browser of this machine could use the engines. */
function IsOrigins(): PropertyDecorator {
  return ValidateBy({
    name: 'isOrigins',
    validator: {
      validate: (values, args) =>
        (values as string[]).every((value) =>
          value === '*'
            ? (args!.object as GatewayConfig).apiKeys === 'on'
            : URL.canParse(value) && new URL(value).origin === value,
        ),
      defaultMessage: () => 'must be origins as https://app.example, or * with API_KEYS=on',
    },
  });
}

/** Whether only programs of this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host) && (host === 'localhost' || isIP(host) !== 0);
}
