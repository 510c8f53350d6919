// Reads deploy/kubernetes/ as kustomize does, as far as the tests need it, and checks documents against the schemas of Kubernetes.

import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import { Ingress } from 'kubernetes-models/networking.k8s.io/v1/Ingress';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { Namespace } from 'kubernetes-models/v1/Namespace';
import { Service } from 'kubernetes-models/v1/Service';
import { ServiceAccount } from 'kubernetes-models/v1/ServiceAccount';
import { parse, parseAllDocuments } from 'yaml';

type Labels = Readonly<Record<string, string>>;
type Reference = { readonly name: string };

type Probe = { readonly httpGet: { readonly path: string; readonly port: string } };

type Container = {
  readonly image: string;
  readonly command: readonly string[];
  readonly envFrom: readonly { readonly configMapRef?: Reference; readonly secretRef?: Reference }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly lifecycle?: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
};

type PodSpec = {
  readonly containers: readonly [Container];
  readonly terminationGracePeriodSeconds: number;
};

/** The parts of the documents that the tests look at. Which of them a document has depends on its kind. */
export type Manifest = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: PodSpec };
    readonly selector: { readonly matchLabels: Labels };
    readonly podSelector: { readonly matchLabels: Labels };
    readonly scaleTargetRef: { readonly kind: string; readonly name: string };
    readonly ports: readonly { readonly port: number; readonly targetPort: string }[];
    readonly ingress: readonly { readonly ports: readonly { readonly port: string }[] }[];
    readonly egress: readonly { readonly to?: readonly { readonly ipBlock?: { readonly except?: string[] } }[] }[];
    readonly rules: readonly { readonly http: { readonly paths: readonly { readonly backend: unknown }[] } }[];
  };
};

type Kustomization = {
  readonly resources: readonly string[];
  readonly configMapGenerator: readonly { readonly name: string; readonly literals: readonly string[] }[];
  readonly secretGenerator?: readonly { readonly name: string; readonly envs: readonly string[] }[];
  readonly patches?: readonly { readonly path: string }[];
};

export const readKustomization = (folder: string): Kustomization =>
  parse(readFileSync(path.join(folder, 'kustomization.yaml'), 'utf8'));

/** @throws for a file that is not there, and for one that is not YAML */
export function readManifests(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(file, 'utf8')).map((document) => {
    for (const error of document.errors) throw error;
    return document.toJS();
  });
}

/** All documents that a folder's kustomization names, those of other kustomizations included. */
export function resourcesOf(folder: string): Manifest[] {
  return readKustomization(folder).resources.flatMap((name) => {
    const resource = path.join(folder, name);
    return statSync(resource).isDirectory() ? resourcesOf(resource) : readManifests(resource);
  });
}

type Model = { validate(): void };
const MODELS: Readonly<Record<string, new (document: never) => Model>> = {
  'apps/v1 Deployment': Deployment,
  'autoscaling/v2 HorizontalPodAutoscaler': HorizontalPodAutoscaler,
  'networking.k8s.io/v1 Ingress': Ingress,
  'networking.k8s.io/v1 NetworkPolicy': NetworkPolicy,
  'policy/v1 PodDisruptionBudget': PodDisruptionBudget,
  'v1 Namespace': Namespace,
  'v1 Service': Service,
  'v1 ServiceAccount': ServiceAccount,
};

/**
 * The faults of a document by the schema of its kind. The schemas allow unknown fields, but `kubectl` refuses them: a field counts as
 * unknown if the check by the schema did not read it.
 */
export function schemaFaults(document: Manifest): string[] {
  const Kind = MODELS[`${document.apiVersion} ${document.kind}`];
  if (Kind === undefined) return [`${document.apiVersion} ${document.kind} is none of the kinds that are checked`];
  const looked = new Set<string>();
  const model = watched(new Kind(document as never), '', looked);
  try {
    model.validate();
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
  return fieldsOf(document, '').filter((field) => !looked.has(field));
}

/** The same object, but every field of it that somebody reads is noted. */
function watched<T extends object>(object: T, at: string, looked: Set<string>): T {
  return new Proxy(object, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      const field = `${at}/${String(name)}`;
      looked.add(field);
      return typeof value === 'object' && value !== null ? watched(value, field, looked) : value;
    },
  });
}

function fieldsOf(value: unknown, at: string): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [`${at}/${name}`, ...fieldsOf(inner, `${at}/${name}`)]);
}
