import { MINIMUM_REDIS_MAJOR } from '../shared.mjs';
import type { RedisStore } from './redis-store.ts';
import { StartRefused } from './start-refused.ts';

/**
 * A replica that has not confirmed anything for longer than this counts as away. The default of Redis' own `min-replicas-max-lag`
 * is the same.
 */
const MAX_LAG_SECONDS = 10;

/** `host:port` of the server that a `redis[s]://` URL names. */
export function addressOf(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname || '127.0.0.1'}:${port || 6379}`;
}

/** What one server says about itself in its reply to INFO. */
export type NodeInfo = {
  readonly memoryBytes: number;
  /** `maxmemory`; 0: without a bound. */
  readonly maxMemoryBytes: number;
  /** Replicas that follow it and have confirmed something recently. */
  readonly replicas: number;
  /** Why this Redis must not be used; null if it may. */
  readonly fault: string | null;
  readonly warnings: readonly string[];
};

/** @param kind whether `REDIS_URL` names it as the only server or as a node of a cluster */
export function readNodeInfo(info: string, kind: 'single' | 'cluster'): NodeInfo {
  const field = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1];
  return {
    memoryBytes: Number(field('used_memory') ?? 0),
    maxMemoryBytes: Number(field('maxmemory') ?? 0),
    replicas: replicasOf(info),
    fault: faultOf(field, kind),
    warnings:
      field('aof_enabled') === '0'
        ? ['redis has AOF off: a restart loses open calls and usage not yet in Postgres. Set appendonly yes.']
        : [],
  };
}

/** How many replicas follow this Redis and have confirmed something recently. @param info the reply to INFO */
export function replicasOf(info: string): number {
  const lags = Array.from(info.matchAll(/^slave\d+:.*\bstate=online\b.*\blag=(\d+)/gm), ([, lag]) => Number(lag));
  return lags.filter((lag) => lag <= MAX_LAG_SECONDS).length;
}

/** A Redis that is too old or evicts keys must not be used: if a wallet or a hold vanishes, money vanishes. */
function faultOf(field: (name: string) => string | undefined, kind: 'single' | 'cluster'): string | null {
  const version = field('redis_version') ?? '';
  if (Number.parseInt(version, 10) < MINIMUM_REDIS_MAJOR) {
    return `redis ${version} is too old: ${MINIMUM_REDIS_MAJOR}.0 or newer is needed`;
  }
  if (kind === 'single' && field('cluster_enabled') === '1') {
    return 'this redis is a node of a cluster: REDIS_URL must begin with redis+cluster:// and name its nodes';
  }
  const policy = field('maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    return `redis has maxmemory-policy ${policy}: it would evict money. Set it to noeviction.`;
  }
  return null;
}

/**
 * Throws when Redis must not be used.
 *
 * @returns warnings for the operator
 */
export async function checkRedisPolicy(
  client: Pick<RedisStore, 'command'>,
  kind: 'single' | 'cluster',
): Promise<readonly string[]> {
  const { fault, warnings } = readNodeInfo(String(await client.command('info', [])), kind);
  if (fault !== null) throw new StartRefused(fault);
  return warnings;
}
