import { Env, ServiceConfig, withEngines } from '@broomwagon/platform';
import { IsUrl, Matches } from 'class-validator';
import { POOL_PATTERN } from '@broomwagon/contracts';

export class LoadBalancerConfig extends withEngines(ServiceConfig) {
  @Env('PROBE_INTERVAL_MS', 'pause between two probes of an engine', { min: 100, max: 600_000 })
  probeIntervalMs: number = 2_000;

  @Env('SERVER_FAILED_AFTER_MS', 'silence after which a server is failed', { min: 500, max: 86_400_000 })
  serverFailedAfterMs: number = 30_000;

  @Env(
    'SERVER_SILENT_AFTER_MS',
    'time without a token after which a server that answers probes counts as hung, and its calls move; 0: never',
    { min: 0, max: 86_400_000 },
  )
  serverSilentAfterMs: number = 45_000;

  @Env(
    'PREFILL_TOKENS_PER_SECOND',
    'tokens of a prompt that an engine processes in a second at least; a longer prompt may be silent for longer',
    { min: 1, max: 1_000_000 },
  )
  prefillTokensPerSecond: number = 1_000;

  @Env('UPKEEP_INTERVAL_MS', 'pause between two checks for expired workers and leases', { min: 10, max: 60_000 })
  upkeepIntervalMs: number = 250;

  @Env('SESSION_IDLE_MS', 'idle time after which a session is forgotten', { min: 1_000 })
  sessionIdleMs: number = 14_400_000;

  @Env('MAX_WAITERS', 'maximum waiting acquires of a pool; more are answered QUEUE_FULL', { min: 0 })
  maxWaiters: number = 100_000;

  @Env('ENGINE_URLS', 'URLs of engines that the service registers itself, separated by commas')
  @IsUrl({ require_tld: false, protocols: ['http', 'https'], require_protocol: true }, { each: true })
  engineUrls: string[] = [];

  @Env('ENGINE_POOL', 'pool of the engines found by ENGINE_URLS or Kubernetes')
  @Matches(POOL_PATTERN)
  enginePool: string = 'default';

  @Env('ENGINE_MAX_INFLIGHT', 'maximum leases of an engine found by ENGINE_URLS or Kubernetes', {
    min: 1,
    max: 1_000_000,
  })
  engineMaxInflight: number = 256;

  @Env(
    'ENGINES_VANISHED_PERCENT',
    'when more than this share of at least three found engines is listed no more at once, their servers are kept ' +
      'without new requests, and an alarm is raised; 100: never',
    { min: 1, max: 100 },
  )
  enginesVanishedPercent: number = 50;

  @Env('K8S_LABEL_SELECTOR', 'find engines by EndpointSlices with these labels; empty: off')
  k8sLabelSelector: string = '';

  @Env('K8S_NAMESPACE', 'namespace of the EndpointSlices; default: the namespace of this pod')
  k8sNamespace?: string;

  @Env('K8S_PORT_NAME', 'name of the engine port in the EndpointSlices; default: the first port')
  k8sPortName?: string;

  @Env(
    'K8S_DRAIN_MS',
    'time after which requests on a terminating pod are returned; set it below terminationGracePeriodSeconds',
    { min: 0, max: 86_400_000 },
  )
  k8sDrainMs: number = 25_000;

  @Env('K8S_API_URL', 'API server of Kubernetes; default: the API server of this cluster')
  @IsUrl({ require_tld: false, protocols: ['http', 'https'], require_protocol: true })
  k8sApiUrl?: string;

  @Env('K8S_SERVICE_ACCOUNT_DIR', 'folder with token, ca.crt and namespace')
  k8sServiceAccountDir: string = '/var/run/secrets/kubernetes.io/serviceaccount';
}
