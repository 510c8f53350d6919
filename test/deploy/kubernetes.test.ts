import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { healthRoutes } from '../../src/routes/health.ts';
import { AddressPolicy } from '../../src/upstream/address-policy.ts';
import { readEnv } from './compose-file.ts';
import { type Manifest, readKustomization, readManifests, resourcesOf, schemaFaults } from './manifests.ts';
import { STOP_MARGIN_SECONDS } from './stop-margin.ts';

const BASE = 'deploy/kubernetes/base';
const EXAMPLE = 'deploy/kubernetes/overlays/example';
const base = resourcesOf(BASE);
const all = resourcesOf(EXAMPLE);

const ofKind = (kind: string): Manifest[] => all.filter((manifest) => manifest.kind === kind);
function find(kind: string, name: string): Manifest {
  const found = ofKind(kind).find(({ metadata }) => metadata.name === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
}
const deployments = ofKind('Deployment');
const gateway = find('Deployment', 'tollgate-gateway');
const writer = find('Deployment', 'tollgate-writer');

/** The pods that a selector takes. */
const selected = (labels: Readonly<Record<string, string>>): Manifest[] =>
  deployments.filter(({ spec: { template } }) =>
    Object.entries(labels).every(([name, value]) => template.metadata.labels[name] === value),
  );
const portsOf = ({ spec }: Manifest): string[] => spec.template.spec.containers[0].ports.map(({ name }) => name);

/** `NAME=value` of the base and of the example, as kustomize merges them. */
const settings = [BASE, EXAMPLE].flatMap((folder) => readKustomization(folder).configMapGenerator[0]?.literals ?? []);
const configMap = Object.fromEntries(settings.map((line) => line.split('=') as [string, string]));
const secretsOf = (name: string): Record<string, string> => {
  const envs = readKustomization(EXAMPLE).secretGenerator?.find((secret) => secret.name === name)?.envs ?? [];
  return Object.assign({}, ...envs.map((file) => readEnv(path.join(EXAMPLE, `${file}.example`))));
};
const environmentOf = ({ spec }: Manifest): Record<string, string> =>
  Object.assign(
    {},
    ...spec.template.spec.containers[0].envFrom.map(({ configMapRef, secretRef }) => {
      if (secretRef !== undefined) return secretsOf(secretRef.name);
      expect(configMapRef?.name).toBe('tollgate-settings');
      return configMap;
    }),
  );

describe('the manifests for Kubernetes', () => {
  it.each(all.map((manifest) => [manifest.kind, manifest.metadata.name, manifest] as const))(
    'contain a %s %s that the Kubernetes schema allows',
    (_kind, _name, manifest) => expect(schemaFaults(manifest)).toEqual([]),
  );

  it('are checked by a schema that finds a forbidden value, and a field that does not exist', () => {
    const changed = structuredClone(gateway) as unknown as { spec: Record<string, Record<string, unknown>> };
    changed.spec.strategy = { type: 'Rolling' };
    expect(schemaFaults(changed as unknown as Manifest).join()).toContain('/spec/strategy/type');
    changed.spec.strategy = { type: 'RollingUpdate', maxSurge: 1 };
    expect(schemaFaults(changed as unknown as Manifest)).toEqual(['/spec/strategy/maxSurge']);
  });

  it('have patches that apply to existing objects, and that leave them valid', () => {
    const patches = (readKustomization(EXAMPLE).patches ?? []).flatMap((patch) =>
      readManifests(path.join(EXAMPLE, patch.path)),
    );
    expect(patches).toHaveLength(1);
    for (const patch of patches) {
      const { apiVersion, kind, metadata, spec } = patch;
      const target = base.find((other) => other.kind === kind && other.metadata.name === metadata.name);
      expect(target?.apiVersion).toBe(apiVersion);
      expect(schemaFaults({ ...patch, spec: { ...target?.spec, ...spec } })).toEqual([]);
    }
  });

  it.each(deployments.map((manifest) => [manifest.metadata.name, manifest] as const))(
    'give %s settings that it accepts, and no others',
    (_, manifest) => {
      const env = environmentOf(manifest);
      expect(Object.keys(SETTINGS)).toEqual(expect.arrayContaining(Object.keys(env)));
      expect(loadConfig(env)).toMatchObject({
        drainSeconds: SETTINGS.DRAIN_SECONDS.default,
        // The autoscaler compares the CPU with one core.
        workers: 1,
        trustedProxyHops: 1,
      });
    },
  );

  it('give the keys of secrets and of the first admin to gateways only', () => {
    expect(Object.keys(secretsOf('tollgate-gateway')).toSorted()).toEqual(['ADMIN_BOOTSTRAP_TOKEN', 'SECRETS_KEY']);
    expect(environmentOf(gateway)).toHaveProperty('SECRETS_KEY');
    expect(environmentOf(writer)).not.toHaveProperty('SECRETS_KEY');
  });

  it('let calls finish before a gateway is killed', () => {
    const { containers, terminationGracePeriodSeconds } = gateway.spec.template.spec;
    const [command, seconds] = containers[0].lifecycle?.preStop.exec.command ?? [];
    expect(command).toBe('sleep');
    const needed = Number(seconds) + Number(configMap.DRAIN_SECONDS) + STOP_MARGIN_SECONDS;
    expect(terminationGracePeriodSeconds).toBeGreaterThanOrEqual(needed);
    expect(writer.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(10);
  });

  it('probe ports that a process listens on, and paths that are served', () => {
    const listened = { http: SETTINGS.PORT.default, metrics: SETTINGS.METRICS_PORT.default };
    const served = [...healthRoutes({ isReady: () => true, readyFile: null }).map((route) => route.path), '/metrics'];
    for (const { spec } of deployments) {
      const [container] = spec.template.spec.containers;
      for (const { name, containerPort } of container.ports) expect(listened).toMatchObject({ [name]: containerPort });
      const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
      for (const { httpGet } of probes.filter((probe) => probe !== undefined)) {
        expect(served).toContain(httpGet.path);
        expect(container.ports.map(({ name }) => name)).toContain(httpGet.port);
      }
    }
    expect(gateway.spec.template.spec.containers[0]).toMatchObject({
      command: ['node', 'dist/main.js', 'gateway'],
      livenessProbe: { httpGet: { path: '/healthz' } },
      readinessProbe: { httpGet: { path: '/readyz' } },
    });
    expect(writer.spec.template.spec.containers[0].command).toEqual(['node', 'dist/main.js', 'writer']);
  });

  it('select pods that exist, and ports that these pods have', () => {
    for (const { spec, metadata } of ofKind('Service')) {
      const pods = selected(spec.selector as unknown as Readonly<Record<string, string>>);
      expect(pods.length, metadata.name).toBe(metadata.name === 'tollgate-metrics' ? 2 : 1);
      for (const pod of pods) expect(portsOf(pod)).toEqual(expect.arrayContaining(spec.ports.map((p) => p.targetPort)));
    }
    for (const { spec } of ofKind('NetworkPolicy')) {
      const pods = selected(spec.podSelector.matchLabels);
      expect(pods).not.toEqual([]);
      const ports = spec.ingress.flatMap((rule) => rule.ports.map(({ port }) => port));
      for (const pod of pods) expect(portsOf(pod)).toEqual(expect.arrayContaining(ports));
    }
    expect(selected(find('PodDisruptionBudget', 'tollgate-gateway').spec.selector.matchLabels)).toEqual([gateway]);
    for (const { spec } of deployments) expect(selected(spec.selector.matchLabels)).toHaveLength(1);
    const { kind, name } = find('HorizontalPodAutoscaler', 'tollgate-gateway').spec.scaleTargetRef;
    expect(find(kind, name)).toBe(gateway);
    const backend = find('Ingress', 'tollgate').spec.rules[0]?.http.paths[0]?.backend;
    expect(backend).toEqual({ service: { name: find('Service', 'tollgate').metadata.name, port: { name: 'http' } } });
  });

  it.each(deployments.map((manifest) => [manifest.metadata.name, manifest] as const))(
    'give %s no more privileges than it needs',
    (_, { spec }) => {
      expect(spec.template.spec).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            securityContext: {
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'] },
            },
            resources: { requests: { cpu: expect.any(String) }, limits: { memory: expect.any(String) } },
          },
        ],
      });
    },
  );

  it('forbid outgoing traffic only to addresses that the gateway refuses as well', () => {
    const rules = find('NetworkPolicy', 'tollgate').spec.egress.flatMap(({ to = [] }) => to);
    const barred = rules.flatMap(({ ipBlock }) => ipBlock?.except ?? []);
    expect(barred).toContain('169.254.0.0/16');
    const policy = new AddressPolicy([]);
    for (const range of barred) expect(policy.permits(range.replace(/\/\d+$/, '')), range).toBe(false);
  });
});
