import { Agent, fetch } from 'undici';

/** Address of an API server, and credentials of a caller. */
export interface ApiServerAccess {
  url: string;
  /** CA certificate of the API server. */
  ca: string;
  token: string;
}

export interface Container {
  name: string;
  command?: string[];
  args?: string[];
  env?: { name: string; value?: string; valueFrom?: { fieldRef: { fieldPath: string } } }[];
  image: string;
  volumeMounts: { name: string; mountPath: string }[];
  readinessProbe?: { exec?: { command: string[] } };
  lifecycle?: { preStop?: { exec: { command: string[] } }; postStart?: object };
  envFrom?: { configMapRef?: { name: string }; secretRef?: { name: string } }[];
}

export interface PodSpec {
  serviceAccountName?: string;
  automountServiceAccountToken?: boolean;
  terminationGracePeriodSeconds?: number;
  securityContext: { runAsUser?: number };
  containers: Container[];
  initContainers?: Container[];
  volumes?: { name: string; configMap?: { name: string }; persistentVolumeClaim?: object }[];
}

/** An object of Kubernetes, as far as the tests read it. */
export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; annotations?: Record<string, string> };
  data?: Record<string, string>;
  spec?: Record<string, unknown>;
  [field: string]: unknown;
}

interface Reply {
  status: number;
  /** Text of an answer that is not JSON. */
  body: KubernetesObject & { message?: string };
}
interface ResourceList {
  resources?: { kind: string; name: string; namespaced: boolean }[];
}

/** Requests to the API server as the user of the token. */
export class KubernetesClient {
  private readonly dispatcher: Agent;
  private readonly paths = new Map<string, string>();

  constructor(private readonly access: ApiServerAccess) {
    this.dispatcher = new Agent({ connect: { ca: access.ca } });
  }

  get(path: string): Promise<Reply> {
    return this.send('GET', path);
  }

  async send(method: string, path: string, body?: unknown): Promise<Reply> {
    const response = await fetch(`${this.access.url}${path}`, {
      method,
      dispatcher: this.dispatcher,
      headers: { authorization: `Bearer ${this.access.token}`, 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, body: JSON.parse(text.startsWith('{') ? text : JSON.stringify(text)) as never };
  }

  /** Creates the object; a field that its type does not have is an error. */
  async create(object: KubernetesObject, namespace: string, query = ''): Promise<KubernetesObject> {
    return this.created(`${await this.resolvePath(object, namespace)}?fieldValidation=Strict${query}`, object);
  }

  /** A namespace that admits only pods of a level of security, with the account that a controller would make. */
  async createNamespace(name: string, level = 'restricted'): Promise<void> {
    const labels = { 'pod-security.kubernetes.io/enforce': level };
    await this.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }, name);
    await this.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } }, name);
  }

  /** A token of a service account, valid while `boundSecret` exists. */
  async createToken(serviceAccount: string, namespace: string, boundSecret?: string): Promise<string> {
    const boundObjectRef = boundSecret && { apiVersion: 'v1', kind: 'Secret', name: boundSecret };
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${serviceAccount}/token`;
    const request = await this.created(path, { spec: { expirationSeconds: 3_600, boundObjectRef } });
    return (request['status'] as { token: string }).token;
  }

  /** Whether the API server lets the user of this token do this. */
  async may(verb: string, group: string, resource: string, namespace: string): Promise<boolean> {
    const spec = { resourceAttributes: { verb, group, resource, namespace } };
    const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec };
    const answer = await this.created('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', review);
    return (answer['status'] as { allowed: boolean }).allowed;
  }

  /** Asks as the user of another token. */
  as(token: string): KubernetesClient {
    return new KubernetesClient({ ...this.access, token });
  }

  /** The path of the objects of this type. */
  private async resolvePath({ apiVersion, kind, metadata }: KubernetesObject, namespace: string): Promise<string> {
    const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const type = `${group}/${kind}`;
    if (!this.paths.has(type)) {
      const { resources = [] } = (await this.get(group)).body as ResourceList;
      const found = resources.find((one) => one.kind === kind && !one.name.includes('/'));
      if (found === undefined) throw new Error(`The API server has no ${type}`);
      this.paths.set(type, found.namespaced ? `${group}/namespaces/NAMESPACE/${found.name}` : `${group}/${found.name}`);
    }
    return this.paths.get(type)!.replace('NAMESPACE', metadata.namespace ?? namespace);
  }

  private async created(path: string, sent: object): Promise<KubernetesObject> {
    const { status, body } = await this.send('POST', path, sent);
    if (status !== 201) throw new Error(`POST ${path}: ${status} ${body.message}`);
    return body;
  }
}
