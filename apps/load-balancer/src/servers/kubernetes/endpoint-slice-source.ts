import { BroomwagonError, outages } from '@broomwagon/contracts';
import type { LoadBalancerConfig } from '../../load-balancer.config';
import type { EngineSource, FoundEngine } from '../engine-source';
import { KubernetesApi } from './kubernetes-api';

/** Maximum EndpointSlices in one answer. */
const PAGE = 500;
/** Maximum pages of one list, in case the API server never ends the list. */
const MAX_PAGES = 200;
/** Time after which the API server ends a watch, seconds. The next watch begins with a new list. */
const WATCH_S = 300;

/** The parts of a `discovery.k8s.io/v1` EndpointSlice that are used here; all but the name may be missing. */
interface EndpointSlice {
  metadata: { name: string };
  endpoints?:
    | {
        addresses?: string[];
        conditions?: { ready?: boolean; terminating?: boolean };
        targetRef?: { uid?: string } | null;
      }[]
    | null;
  ports?: { name?: string | null; port?: number | null; appProtocol?: string | null }[] | null;
}
interface EndpointSliceList {
  metadata?: { continue?: string; resourceVersion?: string };
  items?: EndpointSlice[];
}
type WatchEvent =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: EndpointSlice }
  | { type: 'BOOKMARK' }
  | { type: 'ERROR'; object: { message?: string } };

/**
 * Lists engines that are pods behind a Kubernetes service: the endpoints of EndpointSlices with certain labels. A
 * terminating endpoint is listed with a drain time. The slices are listed and then watched. After the end of a watch
 * the next call lists the slices again, so that a missed change is found at the end of its watch. Needs the rights to
 * `list` and `watch` `endpointslices` of `discovery.k8s.io` in the namespace.
 */
export class EndpointSliceSource implements EngineSource {
  private slices = new Map<string, EndpointSlice>();
  private isWatched = false;
  private reportChange: () => void = () => undefined;

  constructor(
    private readonly api: KubernetesApi,
    private readonly config: Pick<
      LoadBalancerConfig,
      'k8sLabelSelector' | 'k8sNamespace' | 'k8sPortName' | 'k8sDrainMs'
    >,
  ) {}

  /** Makes a source with the settings K8S_*. Without K8S_API_URL, asks the API server of this cluster. */
  static ofConfig(config: LoadBalancerConfig): EndpointSliceSource {
    const host = process.env.KUBERNETES_SERVICE_HOST ?? 'kubernetes.default.svc';
    const port = process.env.KUBERNETES_SERVICE_PORT ?? '443';
    const url = config.k8sApiUrl ?? `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
    const api = new KubernetesApi({ url, serviceAccountDir: config.k8sServiceAccountDir });
    return new EndpointSliceSource(api, config);
  }

  whenChanged(listener: () => void): void {
    this.reportChange = listener;
  }

  async engines(signal: AbortSignal): Promise<FoundEngine[]> {
    if (!this.isWatched) await this.listAndWatch(signal);
    const found = new Map<string, FoundEngine>();
    for (const slice of this.slices.values()) this.findIn(slice, found);
    return onePerPod([...found.values()]);
  }

  /** Lists the slices and opens a watch. Without the right to watch, each call of `engines` lists the slices. */
  private async listAndWatch(signal: AbortSignal): Promise<void> {
    const namespace = this.config.k8sNamespace ?? (await this.api.namespace());
    const path = `/apis/discovery.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/endpointslices`;
    const resourceVersion = await this.list(path, signal);
    const query = { watch: 'true', allowWatchBookmarks: 'true', timeoutSeconds: String(WATCH_S), resourceVersion };
    try {
      const events = await this.api.watch(this.buildUrl(path, query), signal);
      this.isWatched = true;
      void this.follow(events as AsyncIterable<WatchEvent>, signal);
    } catch (error) {
      this.noteFailure(error, signal);
    }
  }

  /** Lists the slices. @returns the version of all pages, from which a watch continues */
  private async list(path: string, signal: AbortSignal): Promise<string> {
    const slices: EndpointSlice[] = [];
    let version = '';
    let next = '';
    for (let page = 0; page < MAX_PAGES; page++) {
      const query = { limit: String(PAGE), ...(next === '' ? {} : { continue: next }) };
      const { metadata, items } = (await this.api.get(this.buildUrl(path, query), signal)) as EndpointSliceList;
      slices.push(...(items ?? []));
      version = metadata?.resourceVersion ?? '';
      next = metadata?.continue ?? '';
      if (next === '') break;
    }
    this.slices = new Map(slices.map((slice) => [slice.metadata.name, slice]));
    return version;
  }

  private async follow(events: AsyncIterable<WatchEvent>, signal: AbortSignal): Promise<void> {
    try {
      for await (const event of events) {
        this.apply(event);
        this.noteSuccess();
      }
      this.noteSuccess();
    } catch (error) {
      this.noteFailure(error, signal);
    } finally {
      this.isWatched = false;
    }
  }

  private apply(event: WatchEvent): void {
    // Most errors have status 410: the API server no longer has all changes since the version of the list.
    if (event.type === 'ERROR') throw new BroomwagonError('UNAVAILABLE', event.object.message ?? 'unknown');
    if (event.type === 'BOOKMARK') return;
    const { name } = event.object.metadata;
    if (event.type === 'DELETED') this.slices.delete(name);
    else this.slices.set(name, event.object);
    this.reportChange();
  }

  /** Called after an event or a regular end: a watch that only opens may still fail at its first event. */
  private noteSuccess(): void {
    outages.end(this.api.name, this);
  }

  private noteFailure(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    outages.begin({ name: this.api.name }, error instanceof Error ? error.message : String(error), this);
  }

  private buildUrl(path: string, query: Record<string, string>): string {
    return `${path}?${new URLSearchParams({ labelSelector: this.config.k8sLabelSelector, ...query })}`;
  }

  /**
   * Adds the endpoints of a slice. An endpoint without `ready` counts as ready, as in Kubernetes. A terminating pod is
   * never ready, even if another slice lists the pod as ready.
   */
  private findIn(slice: EndpointSlice, found: Map<string, FoundEngine>): void {
    const { k8sPortName: portName } = this.config;
    const port = (slice.ports ?? []).find(({ name }) => portName === undefined || name === portName);
    if (!port?.port) return;
    const protocol = port.appProtocol === 'https' || port.name === 'https' ? 'https' : 'http';
    for (const { addresses, conditions, targetRef } of slice.endpoints ?? []) {
      const [address] = addresses ?? [];
      const ends = conditions?.terminating === true;
      if (address === undefined) continue;
      const url = `${protocol}://${address.includes(':') ? `[${address}]` : address}:${port.port}`;
      const engine: FoundEngine = { url, ...(targetRef?.uid !== undefined && { identity: targetRef.uid }) };
      const name = `${url} ${targetRef?.uid}`;
      const known = found.get(name);
      if (ends) found.set(name, { ...engine, drainMs: this.config.k8sDrainMs });
      else if (conditions?.ready === false) found.set(name, known ?? { ...engine, isNotReady: true });
      else if (known?.drainMs === undefined) found.set(name, engine);
    }
  }
}

/**
 * Merges the addresses of each pod into one engine. A pod of a dual-stack service has an IPv4 and an IPv6 address, and
 * its engine gets the IPv4 address.
 */
function onePerPod(engines: readonly FoundEngine[]): FoundEngine[] {
  const ofPods = new Map<string, FoundEngine>();
  for (const engine of engines) {
    const { identity = engine.url } = engine;
    const known = ofPods.get(identity);
    if (known === undefined || (known.url.includes('[') && !engine.url.includes('['))) ofPods.set(identity, engine);
  }
  return [...ofPods.values()];
}
