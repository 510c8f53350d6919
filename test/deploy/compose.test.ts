import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DCLinter } from 'dclint';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { composeText, environmentOf, interpolate, readCompose, readEnv, secondsOf } from './compose-file.ts';
import { STOP_MARGIN_SECONDS } from './stop-margin.ts';

/** `.env` as somebody makes it who follows docs/containers.md. */
const filledIn = Object.fromEntries(
  Object.entries(readEnv('.env.example')).map(([name, value]) => {
    if (value !== '') return [name, value];
    return [name, name === 'SECRETS_KEY' ? Buffer.alloc(32, 7).toString('base64') : 'c0ffee'.repeat(8)];
  }),
);
const compose = readCompose(filledIn);
const { services } = compose;
const named = Object.entries(services);
const ours = ['gateway', 'writer'] as const;

type Message = { readonly rule: string; readonly message: string };

/** The faults that the schema of the Compose specification and a linter's rules about safety find. */
function faultsOf(text: string): string[] {
  const dir = mkdtempSync(path.join(tmpdir(), 'tollgate-compose-'));
  try {
    const file = path.join(dir, 'compose.yaml');
    writeFileSync(file, text);
    const style = [
      'no-quotes-in-volumes',
      'require-quotes-in-ports',
      'top-level-properties-order',
      'service-keys-order',
      'services-alphabetical-order',
      'service-dependencies-alphabetical-order',
      'service-ports-alphabetical-order',
      // It is built here, and has the tag of its publisher.
      'no-build-and-image',
    ];
    const rules = Object.fromEntries(style.map((rule) => [rule, 0 as const]));
    const linter = new DCLinter({ rules, quiet: true, debug: false, exclude: [] });
    // Its declarations import without extensions, so the compiler does not find the type of a result.
    const results: readonly { readonly messages: readonly Message[] }[] = linter.lintFiles([file], false);
    return results.flatMap(({ messages }) => messages.map(({ rule, message }) => `${rule}: ${message}`));
  } finally {
    rmSync(dir, { recursive: true });
  }
}

describe('compose.yaml', () => {
  it('is valid by the Compose specification', () => {
    const text = interpolate(composeText(), filledIn);
    expect(faultsOf(text)).toEqual([]);
    // The schema reads what anchors are merged into, too.
    expect(faultsOf(text.replace('read_only: true', 'readonly: true')).join()).toContain('invalid-schema');
  });

  it('does not start without its secrets, and .env.example names each of them', () => {
    const required = Array.from(composeText().matchAll(/\$\{([A-Z_]+):\?/g), ([, name = '']) => name);
    expect(new Set(required)).toEqual(
      new Set(['POSTGRES_PASSWORD', 'REDIS_PASSWORD', 'ADMIN_BOOTSTRAP_TOKEN', 'GRAFANA_PASSWORD']),
    );
    const example = readEnv('.env.example');
    for (const name of required) {
      expect(example[name], name).toBe('');
      expect(() => readCompose({ ...filledIn, [name]: '' })).toThrow(`${name} is not set`);
    }
  });

  it.each(ours)('gives the %s settings that it accepts, for the stores beside it', (name) => {
    const service = services[name];
    const config = loadConfig(environmentOf(service ?? {}, filledIn));
    expect(new URL(config.databaseUrl)).toMatchObject({ hostname: 'postgres', password: filledIn.POSTGRES_PASSWORD });
    expect(new URL(config.redisUrl)).toMatchObject({ hostname: 'redis', password: filledIn.REDIS_PASSWORD });
    expect(service?.command).toEqual(['node', 'dist/main.js', name]);
  });

  it('passes on every setting from .env except those that the containers fix', () => {
    const fixed = ['HOST', 'PORT', 'METRICS_PORT', 'ONE_PROCESS'];
    const secret = ['ADMIN_BOOTSTRAP_TOKEN', 'SECRETS_KEY'];
    const expected = Object.keys(SETTINGS).filter((name) => !fixed.includes(name));
    const namesOf = (name: string): string[] => Object.keys(services[name]?.environment ?? {}).toSorted();
    expect(namesOf('gateway')).toEqual(expected.toSorted());
    // A writer has no use for them.
    expect(namesOf('writer')).toEqual(expected.filter((name) => !secret.includes(name)).toSorted());
  });

  it('lets calls finish before a container is killed', () => {
    const gateway = services.gateway ?? {};
    const { DRAIN_SECONDS } = environmentOf(gateway, filledIn);
    expect(Number(DRAIN_SECONDS)).toBe(SETTINGS.DRAIN_SECONDS.default);
    expect(secondsOf(gateway.stop_grace_period ?? '')).toBeGreaterThanOrEqual(
      Number(DRAIN_SECONDS) + STOP_MARGIN_SECONDS,
    );
    expect(secondsOf(services.writer?.stop_grace_period ?? '')).toBeGreaterThanOrEqual(10);
  });

  it('publishes and checks the port that the gateway listens on, and publishes it to this machine only', () => {
    const port = SETTINGS.PORT.default;
    expect(services.gateway?.ports).toEqual([`127.0.0.1:${port}:${port}`]);
    expect(services.gateway?.healthcheck?.test?.join(' ')).toContain(`http://127.0.0.1:${port}/readyz`);
    const published = named.flatMap(([name, { ports = [] }]) => ports.map((at) => [name, at]));
    expect(published.map(([name]) => name)).toEqual(['gateway', 'prometheus', 'grafana']);
    for (const [, at] of published) expect(at).toMatch(/^127\.0\.0\.1:/);
  });

  it.each(named)('gives %s no more privileges than it needs', (_, service) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      restart: expect.stringMatching(/^(unless-stopped|on-failure:\d+)$/),
      deploy: { resources: { limits: { memory: expect.any(String), pids: expect.any(Number) } } },
    });
    expect(service.cap_add ?? []).toEqual([]);
    expect(service.privileged ?? false).toBe(false);
  });

  it('makes the stores reachable only for gateway and writer', () => {
    expect(compose.networks.stores?.internal).toBe(true);
    const networksOf = (name: string): string[] => {
      const networks = services[name]?.networks ?? [];
      return Array.isArray(networks) ? [...networks] : Object.keys(networks);
    };
    const inside = named.map(([name]) => name).filter((name) => networksOf(name).includes('stores'));
    const stores = inside.filter((name) => name === 'postgres' || name.startsWith('redis'));
    expect(inside.toSorted()).toEqual([...stores, ...ours].toSorted());
    for (const store of stores) expect(networksOf(store), store).toEqual(['stores']);
  });

  it('runs every Redis as Tollgate needs it', () => {
    const servers = named.filter(([, { command }]) => command?.[0] === 'redis-server');
    expect(servers.map(([name]) => name)).toHaveLength(7);
    for (const [name, { command = [] }] of servers) {
      const optionOf = (option: string): string | undefined => command[command.indexOf(`--${option}`) + 1];
      expect(optionOf('maxmemory-policy'), name).toBe('noeviction');
      expect(optionOf('appendonly'), name).toBe('yes');
      expect(optionOf('requirepass'), name).toBe(filledIn.REDIS_PASSWORD);
      if (name !== 'redis') expect(optionOf('cluster-require-full-coverage'), name).toBe('no');
    }
  });

  it('mounts Prometheus and Grafana files of this repository, and no container can change them', () => {
    const mounted = named.flatMap(([, { volumes = [] }]) => volumes.filter((volume) => volume.startsWith('./')));
    expect(mounted).toEqual([
      './deploy/prometheus:/etc/prometheus:ro',
      './deploy/grafana/provisioning:/etc/grafana/provisioning:ro',
      './deploy/grafana/dashboards:/etc/grafana/dashboards:ro',
      './deploy/redis/create-cluster.sh:/create-cluster.sh:ro',
    ]);
  });
});
