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

  @Env('SERVER_FAILED_AFTER_MS', { description: 'a server silent for this long is failed', kind: 'duration' })
  @IsInt()
  @Min(500)
  @Max(86_400_000)
  serverFailedAfterMs: number = 30_000;

  @Env('WORKER_TTL_MS', { description: 'time to live of a worker that names none', kind: 'duration' })
  @IsInt()
  @Min(500)
  @Max(3_600_000)
  workerTtlMs: number = 15_000;

  @Env('UPKEEP_INTERVAL_MS', { description: 'pause between two looks at workers and void leases', kind: 'duration' })
  @IsInt()
  @Min(10)
  @Max(60_000)
  upkeepIntervalMs: number = 250;

  @Env('SESSION_IDLE_MS', { description: 'a session idle for this long is forgotten', kind: 'duration' })
  @IsInt()
  @Min(1_000)
  sessionIdleMs: number = 14_400_000;

  @Env('MAX_SESSIONS', { description: 'sessions kept in a pool; above it the longest idle one goes' })
  @IsInt()
  @Min(1)
  maxSessions: number = 200_000;

  @Env('MAX_WAITERS', { description: 'acquires that may wait in a pool; more are answered QUEUE_FULL' })
  @IsInt()
  @Min(0)
  maxWaiters: number = 100_000;

  @Env('ENGINE_URLS', { description: 'engines to find and register by ourselves, separated by commas', kind: 'list' })
  @IsArray()
  @IsUrl({ require_tld: false, protocols: ['http', 'https'], require_protocol: true }, { each: true })
  engineUrls: string[] = [];

  @Env('ENGINE_POOL', { description: 'pool of the engines that are found' })
  @Matches(POOL_PATTERN)
  enginePool: string = 'default';

  @Env('ENGINE_MAX_INFLIGHT', { description: 'most leases at once on an engine that is found' })
  @IsInt()
  @Min(1)
  @Max(1_000_000)
  engineMaxInflight: number = 256;

  @Env('K8S_LABEL_SELECTOR', { description: 'find engines by EndpointSlices with these labels; empty = off' })
  @IsString()
  k8sLabelSelector: string = '';

  @Env('K8S_NAMESPACE', { description: 'namespace of the EndpointSlices; default that of this pod' })
  @IsOptional()
  @IsString()
  k8sNamespace?: string;

  @Env('K8S_PORT_NAME', { description: 'name of the port of the engines in the EndpointSlices; default the first' })
  @IsOptional()
  @IsString()
  k8sPortName?: string;

  @Env('K8S_DRAIN_MS', {
    description: 'calls on a pod that ends are handed back after this; below its terminationGracePeriodSeconds',
    kind: 'duration',
  })
  @IsInt()
  @Min(0)
  @Max(86_400_000)
  k8sDrainMs: number = 25_000;

  @Env('K8S_API_URL', { description: 'API server of Kubernetes; default that of the cluster of this pod' })
  @IsOptional()
  @IsUrl({ require_tld: false, protocols: ['http', 'https'], require_protocol: true })
  k8sApiUrl?: string;

  @Env('K8S_SERVICE_ACCOUNT_DIR', { description: 'folder with token, ca.crt and namespace' })
  @IsString()
  k8sServiceAccountDir: string = '/var/run/secrets/kubernetes.io/serviceaccount';
}
