import type { LoadBalancerConfig } from '../../load-balancer.config';
import type { EngineSource } from '../engine-source';
import { KubernetesApi } from './kubernetes-api';

/** EndpointSlices in one answer. */
const PAGE = 500;
/** Pages of one look: a bound on a server that never ends. */
const MOST_PAGES = 200;

/** The parts of a `discovery.k8s.io/v1` EndpointSlice that are used here; all may be missing. */
interface EndpointSlice {
  endpoints?: { addresses?: string[]; conditions?: { ready?: boolean; terminating?: boolean } }[] | null;
  ports?: { name?: string | null; port?: number | null; appProtocol?: string | null }[] | null;
}
interface EndpointSliceList {
  metadata?: { continue?: string };
  items?: EndpointSlice[];
}

/** What to look for. */
export interface EndpointSliceOptions {
  labelSelector: string;
  /** Default: the namespace of this pod. */
  namespace?: string;
  /** Default: the first port of each slice. */
  portName?: string;
}

/**
 * Engines that are pods behind a Kubernetes service: the ready endpoints of the EndpointSlices with certain labels. A
 * look at the list every time, no watch: it is as fresh as the probes, and nothing can be missed. Needs the right to
 * `list` `endpointslices` of `discovery.k8s.io` in the namespace.
 */
export class EndpointSliceSource implements EngineSource {
  constructor(
    private readonly api: KubernetesApi,
    private readonly options: EndpointSliceOptions,
  ) {}

  /** As configured by K8S_*; the API server is that of the cluster unless another one is named. */
  static ofConfig(config: LoadBalancerConfig): EndpointSliceSource {
    const host = process.env.KUBERNETES_SERVICE_HOST ?? 'kubernetes.default.svc';
    const port = process.env.KUBERNETES_SERVICE_PORT ?? '443';
    const url = config.k8sApiUrl ?? `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
    const api = new KubernetesApi({ url, serviceAccountDir: config.k8sServiceAccountDir });
    return new EndpointSliceSource(api, {
      labelSelector: config.k8sLabelSelector,
      namespace: config.k8sNamespace,
      portName: config.k8sPortName,
    });
  }

  async engineUrls(signal: AbortSignal): Promise<string[]> {
    const namespace = this.options.namespace ?? (await this.api.namespace());
    const urls = new Set<string>();
    let next = '';
    for (let page = 0; page < MOST_PAGES; page++) {
      const query = new URLSearchParams({ labelSelector: this.options.labelSelector, limit: String(PAGE) });
      if (next !== '') query.set('continue', next);
      const path = `/apis/discovery.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/endpointslices?${query}`;
      const list = (await this.api.get(path, signal)) as EndpointSliceList;
      for (const slice of list.items ?? []) for (const url of this.urlsOf(slice)) urls.add(url);
      next = list.metadata?.continue ?? '';
      if (next === '') break;
    }
    return [...urls];
  }

  /** `ready` that is missing counts as ready, as Kubernetes says; a pod that ends is not to be found anew. */
  private urlsOf(slice: EndpointSlice): string[] {
    const { portName } = this.options;
    const port = (slice.ports ?? []).find(({ name }) => portName === undefined || name === portName);
    if (!port?.port) return [];
    const protocol = port.appProtocol === 'https' || port.name === 'https' ? 'https' : 'http';
    return (slice.endpoints ?? [])
      .filter(({ conditions }) => conditions?.ready !== false && conditions?.terminating !== true)
      .flatMap(({ addresses }) => addresses?.slice(0, 1) ?? [])
      .map((address) => `${protocol}://${address.includes(':') ? `[${address}]` : address}:${port.port}`);
  }
}
