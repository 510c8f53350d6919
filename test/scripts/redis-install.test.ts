import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { findRedisServer } from '../../scripts/local/redis-install.mjs';
import { readSettings } from '../../scripts/local/settings.mjs';
import { loadConfig } from '../../src/config/config.ts';
import type { RedisClient } from '../../src/platform/redis.ts';
import { checkRedisPolicy } from '../../src/platform/redis-node.ts';
import { scratchDir } from '../support/stores.ts';

/** Makes programs that only print their version, each in a folder of its own. */
function foldersWith(...programs: (readonly [name: string, says: string])[]): string[] {
  const base = mkdtempSync(path.join(scratchDir(), 'path-'));
  return programs.map(([name, says], i) => {
    const folder = path.join(base, String(i));
    mkdirSync(folder);
    writeFileSync(path.join(folder, name), `#!/bin/sh\necho '${says}'\n`, { mode: 0o755 });
    return folder;
  });
}

const redis = (version: string) => ['redis-server', `Redis server v=${version} sha=00000000:0 bits=64`] as const;
const valkey = (version: string) => ['valkey-server', `Valkey server v=${version} sha=00000000:0 bits=64`] as const;

/** Whether the gateway refuses this version when it starts. */
async function isRefusedByStart(version: string): Promise<boolean> {
  const info = `redis_version:${version}\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n`;
  const client = { command: async () => info } as unknown as RedisClient;
  return checkRedisPolicy(client, 'single').then(
    () => false,
    () => true,
  );
}

describe('the Redis server program', () => {
  it.each(['5.0.7', '6.2.14', '6.9.99', '7.0.0', '7.4.1', '8.0.3', '10.1.0'])(
    'of version %s is accepted exactly if the gateway accepts that version at its start',
    async (version) => {
      const [folder = ''] = foldersWith(redis(version));
      if (await isRefusedByStart(version)) {
        const message = `${folder}/redis-server is version ${version}\nTollgate needs a Redis (7.0 or newer)`;
        expect(() => findRedisServer([folder])).toThrow(message);
      } else {
        expect(findRedisServer([folder])).toBe(`${folder}/redis-server`);
      }
    },
  );

  it('that is too old does not hide a newer Redis, or Valkey', () => {
    const folders = foldersWith(redis('6.0.16'), redis('7.2.5'));
    expect(findRedisServer(folders)).toBe(`${folders[1]}/redis-server`);
    const others = foldersWith(valkey('8.1.0'), redis('6.0.16'));
    expect(findRedisServer(others)).toBe(`${others[0]}/valkey-server`);
  });

  it('that does not print its version is not accepted', () => {
    expect(() => findRedisServer(foldersWith(['redis-server', 'hello']))).toThrow('is version unknown');
    expect(() => findRedisServer([])).toThrow('Tollgate needs a Redis (7.0 or newer)');
  });
});

describe('numbers that are in two files are equal', () => {
  it.each([undefined, '', '0', '7'])('DRAIN_SECONDS %j in the launcher and in the gateway', (text) => {
    const env = {
      DATABASE_URL: 'postgres://h/d',
      REDIS_URL: 'redis://h:1',
      ...(text === undefined ? {} : { DRAIN_SECONDS: text }),
    };
    expect(readSettings(env).drainSeconds).toBe(loadConfig(env).drainSeconds);
  });

  it('the oldest Redis in docs/operating.md and in the start check of the gateway', async () => {
    const page = readFileSync('docs/operating.md', 'utf8');
    const [, major = ''] = /One Redis \((\d+) or newer\)/.exec(page) ?? [];
    expect([await isRefusedByStart(`${Number(major) - 1}.9.9`), await isRefusedByStart(`${major}.0.0`)]).toEqual([
      true,
      false,
    ]);
  });
});
