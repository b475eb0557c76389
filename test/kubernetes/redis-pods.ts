import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ManagedProcess, type ProcessGroup, TEST_CERTIFICATE, TEST_KEY } from '@broomwagon/testing';
import { findServers } from '../../libs/testing/src/provision/find-servers';
import { toPod } from './chart';
import type { Container, KubernetesObject } from './kubernetes-client';

/** Folders of the containers. */
const FOLDERS = /(?<=[ "'=-]|^)\/(?:etc\/redis-tls|etc\/redis|data|tmp)\b/gm;
const CERTIFICATES = {
  'ca.crt': TEST_CERTIFICATE,
  'tls.crt': TEST_CERTIFICATE,
  'tls.key': TEST_KEY,
  'client.crt': TEST_CERTIFICATE,
  'client.key': TEST_KEY,
};
/** Timeout of a command in a pod. The scripts wait for five minutes at most. */
const TIMEOUT_MS = 330_000;

/**
 * The servers of Redis that a rendered chart describes, as processes. Each pod has a name, an address, a volume, and
 * the commands, variables and files of its containers. Only their folders differ, and the address at which they listen.
 */
export class RedisPods {
  private readonly addresses = new Map<string, string>();
  private readonly running = new Map<string, ManagedProcess[]>();
  private starts = 0;

  constructor(
    private readonly objects: readonly KubernetesObject[],
    private readonly group: ProcessGroup,
    private readonly folder: string,
  ) {}

  get names(): string[] {
    const { replicas } = this.find('StatefulSet', 'broomwagon-redis').spec as { replicas: number };
    return Array.from({ length: replicas }, (_, number) => `broomwagon-redis-${number}`);
  }

  get containers(): Container[] {
    return toPod(this.find('StatefulSet', 'broomwagon-redis'))!.spec.containers;
  }

  /** DNS name of a pod. */
  toHost(name: string): string {
    const { metadata } = this.find('StatefulSet', 'broomwagon-redis');
    return `${name}.broomwagon-redis-servers.${metadata.namespace}.svc`;
  }

  /** Starts the containers of a pod, at an address that no pod has had. */
  async start(name: string): Promise<void> {
    const start = (this.starts += 1);
    this.addresses.set(name, `10.244.0.${10 + start}`);
    this.writeHosts();
    const started = this.containers.map(async (container) => {
      const environment = await this.prepare(container, name);
      // The kubelet replaces variables in arguments.
      const given = (container.args ?? []).map((text) => text.replace(/\$\((\w+)\)/g, (_, key) => environment[key]!));
      const [program, ...rest] = [...container.command!, ...given].map((text) => this.here(text, container, name));
      return this.group.start({
        name: `${name}-${container.name}-${start}`,
        command: [program!, ...rest, '--bind', this.addresses.get(name)!],
        environment,
      });
    });
    this.running.set(name, await Promise.all(started));
  }

  async startAll(): Promise<void> {
    await Promise.all(this.names.map((name) => this.start(name)));
  }

  /** Kills all processes of a pod; its name then has no address. */
  async kill(name: string): Promise<void> {
    const processes = this.running.get(name)!;
    for (const one of processes) one.kill();
    await Promise.all(processes.map(({ exited }) => exited));
    this.addresses.delete(name);
    this.writeHosts();
  }

  async killAll(): Promise<void> {
    await Promise.all(this.names.map((name) => this.kill(name)));
  }

  loseVolume(name: string): void {
    rmSync(join(this.folder, name, 'data'), { recursive: true });
  }

  /** Names of the pods whose readiness probes all succeed. */
  async ready(): Promise<string[]> {
    const answers = await Promise.all(
      this.names.map(async (name) => {
        if (!this.addresses.has(name)) return [];
        const probes = this.containers.map((container) =>
          this.execute(container.readinessProbe!.exec!.command, container, name),
        );
        return Promise.all(probes).then(
          () => [name],
          () => [],
        );
      }),
    );
    return answers.flat();
  }

  /** Output of redis-cli in a pod, as the user `admin`. */
  async ask(name: string, command: string): Promise<string> {
    const script = `REDISCLI_AUTH=$REDIS_ADMIN_PASSWORD redis-cli --user admin $REDIS_CLI_TLS ${command}`;
    return String(await this.execute(['sh', '-c', script], this.containers[0]!, name)).trim();
  }

  /** Runs the Job that makes the Cluster. */
  async createCluster(): Promise<string> {
    const job = toPod(this.objects.find(({ kind }) => kind === 'Job')!)!;
    const [container] = job.spec.containers;
    return String(await this.execute(container!.command!, container!, 'broomwagon-redis-cluster'));
  }

  /** Runs a command in a container, as `kubectl exec` does. @throws Error with its output */
  async execute(
    command: readonly string[],
    container: Container,
    name: string,
    input: Buffer = Buffer.alloc(0),
  ): Promise<Buffer> {
    const env = { ...process.env, ...(await this.prepare(container, name)) };
    const [program, ...rest] = command.map((text) => this.here(text, container, name));
    return new Promise((resolve, reject) => {
      const options = { env, encoding: 'buffer', timeout: TIMEOUT_MS, maxBuffer: 1e8 } as const;
      const child = execFile(program!, rest, options, (error, output, complaint) =>
        error === null ? resolve(output) : reject(new Error(`${error.message} ${String(output)} ${String(complaint)}`)),
      );
      child.stdin!.on('error', () => undefined);
      child.stdin!.end(input);
    });
  }

  private find(kind: string, name: string): KubernetesObject {
    return this.objects.find((one) => one.kind === kind && one.metadata.name === name)!;
  }

  /** The network namespace of the suite has this file as /etc/hosts. */
  private writeHosts(): void {
    const lines = [...this.addresses].map(([name, address]) => `${address} ${this.toHost(name)}`);
    writeFileSync(process.env['KUBERNETES_HOSTS']!, ['127.0.0.1 localhost', ...lines, ''].join('\n'));
  }

  private here(text: string, { name }: Container, pod: string): string {
    return text.replace(FOLDERS, (path) => join(this.folder, pod, path === '/data' ? '' : name, path));
  }

  /** Writes the files of a container. Returns its variables. */
  private async prepare(container: Container, pod: string): Promise<Record<string, string>> {
    const root = join(this.folder, pod, container.name);
    for (const path of [join(root, 'tmp'), join(root, 'bin'), join(this.folder, pod, 'data')]) {
      mkdirSync(path, { recursive: true });
    }
    const write = (path: string, text: string, mode = 0o644) => {
      const file = join(root, path);
      // Another command may be reading the file, so an equal one is not written again.
      if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(`${file}.new`, text, { mode });
      renameSync(`${file}.new`, file);
    };
    for (const [file, text] of Object.entries(this.find('ConfigMap', 'broomwagon-redis').data!)) {
      write(`etc/redis/${file}`, this.here(text, container, pod));
    }
    for (const [file, text] of Object.entries(CERTIFICATES)) write(`etc/redis-tls/${file}`, text);
    const found = (await findServers(['redis'])).get('redis')!;
    if (found.source === 'docker') throw new Error('no program of redis');
    const { path, environment } = found.binary;
    const address = this.addresses.get(pod);
    // A server of a pod listens at all its addresses.
    const host = address === undefined ? '' : `-h ${address}`;
    write('bin/redis-cli', `#!/bin/sh\nexec ${join(dirname(path), 'redis-cli')} ${host} "$@"\n`, 0o755);
    const fields: Record<string, string | undefined> = { 'metadata.name': pod, 'status.podIP': address };
    const variables: Record<string, string> = {};
    for (const { name, value, valueFrom } of container.env ?? []) {
      const text = value ?? fields[valueFrom!.fieldRef.fieldPath] ?? '';
      variables[name] = this.here(
        text.replace(/\$\((\w+)\)/g, (_, key) => variables[key]!),
        container,
        pod,
      );
    }
    return {
      ...(environment as Record<string, string>),
      ...(this.find('Secret', 'broomwagon-passwords')['stringData'] as Record<string, string>),
      ...variables,
      PATH: [join(root, 'bin'), dirname(path), process.env['PATH']].join(':'),
    };
  }
}
