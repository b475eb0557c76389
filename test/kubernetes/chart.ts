import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { inject } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubernetesObject, PodSpec } from './kubernetes-client';

export const CHART = 'deploy/helm/broomwagon';

/** A pod, or the template of a Deployment or StatefulSet. */
export type Pod = KubernetesObject & { spec: PodSpec };

/** Output of a program of the suite; fails with its complaint. */
export function run(program: string, ...args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(join(inject('programs'), program), args, { maxBuffer: 1e8 }, (error, output, complaint) =>
      error === null ? resolve(output) : reject(new Error(`${output}${complaint}`)),
    );
  });
}

export const helm = (...args: string[]): Promise<string> => run('helm', ...args);

/** The objects in a text of YAML documents. */
export function objectsIn(text: string): KubernetesObject[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors[0]) throw document.errors[0];
    return (document.toJS() as KubernetesObject | null) ?? [];
  });
}

/** The objects that the chart makes of these values, its test included. */
export async function rendered(release: string, ...args: string[]): Promise<KubernetesObject[]> {
  return objectsIn(await helm('template', release, CHART, ...args));
}

/** The pod that an object makes, or the object itself. */
export function toPod(object: KubernetesObject): Pod | undefined {
  if (object.kind === 'Pod') return object as Pod;
  const { jobTemplate } = (object.spec ?? {}) as { jobTemplate?: { spec: object } };
  const { template, volumeClaimTemplates = [] } = (jobTemplate?.spec ?? object.spec ?? {}) as {
    template?: Pod;
    volumeClaimTemplates?: { metadata: { name: string } }[];
  };
  if (template?.spec?.containers === undefined) return undefined;
  const metadata = { ...template.metadata, name: object.metadata.name };
  const claims = volumeClaimTemplates.map(({ metadata: { name } }) => ({
    name,
    persistentVolumeClaim: { claimName: `${name}-${object.metadata.name}-0` },
  }));
  const volumes = [...(template.spec.volumes ?? []), ...claims];
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { ...template.spec, volumes } };
}
