import { Env, ServiceConfig, withEngines } from '@broomwagon/platform';
import { IsArray, IsInt, IsOptional, IsString, IsUrl, Matches, Max, Min } from 'class-validator';
import { POOL_PATTERN } from '@broomwagon/contracts';

/** Configuration of the load-balancer. */
export class LoadBalancerConfig extends withEngines(ServiceConfig) {
  @Env('PROBE_INTERVAL_MS', { description: 'pause between two probes of an engine', kind: 'duration' })
  @IsInt()
  @Min(100)
  @Max(600_000)
  probeIntervalMs: number = 2_000;

  @Env('SERVER_FAILED_AFTER_MS', { description: 'silence after which a server is failed', kind: 'duration' })
  @IsInt()
  @Min(500)
  @Max(86_400_000)
  serverFailedAfterMs: number = 30_000;

  @Env('WORKER_TTL_MS', { description: 'default time to live of a worker', kind: 'duration' })
  @IsInt()
  @Min(500)
  @Max(3_600_000)
  workerTtlMs: number = 15_000;

  @Env('UPKEEP_INTERVAL_MS', {
    description: 'pause between two checks for expired workers and leases',
    kind: 'duration',
  })
  @IsInt()
  @Min(10)
  @Max(60_000)
  upkeepIntervalMs: number = 250;

  @Env('SESSION_IDLE_MS', { description: 'idle time after which a session is forgotten', kind: 'duration' })
  @IsInt()
  @Min(1_000)
  sessionIdleMs: number = 14_400_000;

  @Env('MAX_SESSIONS', {
    description: 'maximum sessions of a pool; above it the session that was idle longest is forgotten',
  })
  @IsInt()
  @Min(1)
  maxSessions: number = 200_000;

  @Env('MAX_WAITERS', { description: 'maximum waiting acquires of a pool; more are answered QUEUE_FULL' })
  @IsInt()
  @Min(0)
  maxWaiters: number = 100_000;

  @Env('ENGINE_URLS', {
    description: 'URLs of engines that the service registers itself, separated by commas',
    kind: 'list',
  })
  @IsArray()
  @IsUrl({ require_tld: false, protocols: ['http', 'https'], require_protocol: true }, { each: true })
  engineUrls: string[] = [];

  @Env('ENGINE_POOL', { description: 'pool of the engines found by ENGINE_URLS or Kubernetes' })
  @Matches(POOL_PATTERN)
  enginePool: string = 'default';

  @Env('ENGINE_MAX_INFLIGHT', { description: 'maximum leases of an engine found by ENGINE_URLS or Kubernetes' })
  @IsInt()
  @Min(1)
  @Max(1_000_000)
  engineMaxInflight: number = 256;

  @Env('K8S_LABEL_SELECTOR', { description: 'find engines by EndpointSlices with these labels; empty: off' })
  @IsString()
  k8sLabelSelector: string = '';

  @Env('K8S_NAMESPACE', { description: 'namespace of the EndpointSlices; default: the namespace of this pod' })
  @IsOptional()
  @IsString()
  k8sNamespace?: string;

  @Env('K8S_PORT_NAME', { description: 'name of the engine port in the EndpointSlices; default: the first port' })
  @IsOptional()
  @IsString()
  k8sPortName?: string;

  @Env('K8S_DRAIN_MS', {
    description:
      'time after which requests on a terminating pod are returned; set it below terminationGracePeriodSeconds',
    kind: 'duration',
  })
  @IsInt()
  @Min(0)
  @Max(86_400_000)
  k8sDrainMs: number = 25_000;

  @Env('K8S_API_URL', { description: 'API server of Kubernetes; default: the API server of this cluster' })
  @IsOptional()
  @IsUrl({ require_tld: false, protocols: ['http', 'https'], require_protocol: true })
  k8sApiUrl?: string;

  @Env('K8S_SERVICE_ACCOUNT_DIR', { description: 'folder with token, ca.crt and namespace' })
  @IsString()
  k8sServiceAccountDir: string = '/var/run/secrets/kubernetes.io/serviceaccount';
}
