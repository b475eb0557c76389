import type { LoadBalancerConfig } from '../../load-balancer.config';
import type { EngineSource, FoundEngine } from '../engine-source';
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

/**
 * Engines that are pods behind a Kubernetes service: the ready endpoints of the EndpointSlices with certain labels, and
 * those that end, to be drained. The list is read every time, without a watch: it is as fresh as the probes, and no
 * change can be missed. Needs the right to `list` `endpointslices` of `discovery.k8s.io` in the namespace.
 */
export class EndpointSliceSource implements EngineSource {
  constructor(
    private readonly api: KubernetesApi,
    private readonly config: Pick<
      LoadBalancerConfig,
      'k8sLabelSelector' | 'k8sNamespace' | 'k8sPortName' | 'k8sDrainMs'
    >,
  ) {}

  /** As configured by K8S_*; the API server is that of the cluster unless another one is named. */
  static ofConfig(config: LoadBalancerConfig): EndpointSliceSource {
    const host = process.env.KUBERNETES_SERVICE_HOST ?? 'kubernetes.default.svc';
    const port = process.env.KUBERNETES_SERVICE_PORT ?? '443';
    const url = config.k8sApiUrl ?? `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
    const api = new KubernetesApi({ url, serviceAccountDir: config.k8sServiceAccountDir });
    return new EndpointSliceSource(api, config);
  }

  async engines(signal: AbortSignal): Promise<FoundEngine[]> {
    const namespace = this.config.k8sNamespace ?? (await this.api.namespace());
    const found = new Map<string, FoundEngine>();
    let next = '';
    for (let page = 0; page < MOST_PAGES; page++) {
      const query = new URLSearchParams({ labelSelector: this.config.k8sLabelSelector, limit: String(PAGE) });
      if (next !== '') query.set('continue', next);
      const path = `/apis/discovery.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/endpointslices?${query}`;
      const list = (await this.api.get(path, signal)) as EndpointSliceList;
      for (const slice of list.items ?? []) this.findIn(slice, found);
      next = list.metadata?.continue ?? '';
      if (next === '') break;
    }
    return [...found.values()];
  }

  /**
   * `ready` that is missing counts as ready, as in Kubernetes. A pod that ends is never ready; it may be in several
   * slices.
   */
  private findIn(slice: EndpointSlice, found: Map<string, FoundEngine>): void {
    const { k8sPortName: portName } = this.config;
    const port = (slice.ports ?? []).find(({ name }) => portName === undefined || name === portName);
    if (!port?.port) return;
    const protocol = port.appProtocol === 'https' || port.name === 'https' ? 'https' : 'http';
    for (const { addresses, conditions } of slice.endpoints ?? []) {
      const [address] = addresses ?? [];
      const ends = conditions?.terminating === true;
      if (address === undefined || (conditions?.ready === false && !ends)) continue;
      const url = `${protocol}://${address.includes(':') ? `[${address}]` : address}:${port.port}`;
      if (ends) found.set(url, { url, drainMs: this.config.k8sDrainMs });
      else if (!found.has(url)) found.set(url, { url });
    }
  }
}
