import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { helpText, parseCommand } from '../../src/config/commands.ts';
import { ConfigError, loadConfig } from '../../src/config/config.ts';
import { readSettings } from '../../src/config/read-settings.ts';
import { SETTINGS } from '../../src/config/settings.ts';

const stores = { DATABASE_URL: 'postgres://u:secret@h/d', REDIS_URL: 'redis://h:1' };
const faultsOf = (env: Record<string, string>): readonly string[] => {
  try {
    loadConfig(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
};

describe('the configuration', () => {
  it('is read exactly as ajv would read it with the schemas of the settings', () => {
    const required = ['DATABASE_URL', 'REDIS_URL'];
    const schema = { type: 'object', properties: SETTINGS, required };
    const validate = new Ajv({ allErrors: true, coerceTypes: true, useDefaults: true }).compile(schema);
    const texts = [
      '-1',
      '0',
      '1',
      '15',
      '16',
      '1000',
      '9007199254740992',
      'on',
      'info',
      'auto',
      '1.5',
      'x',
      'a\nb',
      '\u{1f600}',
    ];
    texts.push('\u{1f600}'.repeat(100), 'x'.repeat(101), 'y'.repeat(10_000), stores.DATABASE_URL, stores.REDIS_URL);
    const differing: object[] = [];
    for (const name of Object.keys(SETTINGS)) {
      for (const text of [...texts, '']) {
        const env: Record<string, string> = { ...stores, [name]: text };
        const { values, faults } = readSettings(SETTINGS, required, env);
        const expected: Record<string, unknown> = Object.fromEntries(
          Object.entries(env).filter(([, value]) => value !== ''),
        );
        const isValid = validate(expected);
        const same =
          faults.length === (validate.errors?.length ?? 0) && (!isValid || isDeepStrictEqual(values, expected));
        if (!same) differing.push({ name, text, values, faults, errors: validate.errors });
      }
    }
    expect(differing).toEqual([]);
  });

  it('reports all faults at once, by name, without repeating values that may be secrets', () => {
    const faults = faultsOf({ DATABASE_URL: 'mysql://u:hunter2@h', PORT: '99999', LOG_LEVEL: 'loud' });
    expect(faults).toHaveLength(4);
    const text = faults.join('\n');
    for (const name of ['DATABASE_URL', 'REDIS_URL is not set', 'PORT', 'LOG_LEVEL']) expect(text).toContain(name);
    expect(text).not.toContain('hunter2');
  });

  it('reads numbers from text, and treats an empty variable as unset', () => {
    expect(loadConfig({ ...stores, PORT: '81', METRICS_PORT: '' })).toMatchObject({ port: 81, metricsPort: 9464 });
  });

  it.each(['1.5', 'abc', '', ' ', '0x50', '1e3', ' 50'])(
    'refuses %j where an integer of at least one is needed, or uses the default',
    (value) => {
      if (value === '') expect(loadConfig({ ...stores, DRAIN_SECONDS: value }).drainSeconds).toBe(20);
      else expect(faultsOf({ ...stores, REDIS_SHARDS: value })).toHaveLength(1);
    },
  );

  it('accepts only a web address as the page where money can be added', () => {
    const TOP_UP_URL = 'https://pay.example.com/top-up?from=tollgate';
    expect(loadConfig({ ...stores, TOP_UP_URL }).operator.topUpOf('a')).toBe(`${TOP_UP_URL}&account_id=a`);
    expect(loadConfig(stores).operator.topUpOf('a')).toBeNull();
    for (const wrong of ['javascript:alert(1)', '/top-up', 'pay.example.com', 'https://'] as const) {
      expect(faultsOf({ ...stores, TOP_UP_URL: wrong })).toEqual(['TOP_UP_URL must be an http or https URL']);
    }
  });

  it('accepts a name, a contact (an address or a page) and a page of terms from the operator', () => {
    const of = (settings: object) => loadConfig({ ...stores, ...settings }).operator;
    expect([of({}).details, of({}).who]).toEqual([null, "this gateway's operator"]);
    const named = of({
      OPERATOR_NAME: 'Acme GmbH',
      OPERATOR_CONTACT: 'help@acme.example',
      TERMS_URL: 'https://acme.example/t',
    });
    expect(named.details).toEqual({
      name: 'Acme GmbH',
      contact: 'help@acme.example',
      terms_url: 'https://acme.example/t',
    });
    expect(named.who).toBe('Acme GmbH (help@acme.example)');
    const page = 'https://acme.example/';
    expect(of({ OPERATOR_CONTACT: page }).who).toBe(`this gateway's operator (${page})`);
    const contact = 'OPERATOR_CONTACT must be an e-mail address, or an http or https URL';
    for (const wrong of ['call us', 'javascript:alert(1)', 'a@b@c', '@', 'ä@b'])
      expect(faultsOf({ ...stores, OPERATOR_CONTACT: wrong })).toEqual([contact]);
    for (const wrong of ['/terms', 'javascript:alert(1)'])
      expect(faultsOf({ ...stores, TERMS_URL: wrong })).toEqual(['TERMS_URL must be an http or https URL']);
    expect(faultsOf({ ...stores, OPERATOR_NAME: 'a\nb' })).toHaveLength(1);
  });

  it('splits the list of address ranges in which services may live', () => {
    expect(loadConfig({ ...stores, UPSTREAM_ALLOW_CIDRS: '10.0.0.0/8, 127.0.0.0/8,' }).upstreamAllowCidrs).toEqual([
      '10.0.0.0/8',
      '127.0.0.0/8',
    ]);
  });

  it.each(['1', '29', '-1', '36501'])('refuses to delete calls after %s days', (days) => {
    expect(faultsOf({ ...stores, USAGE_RETENTION_DAYS: days })).toHaveLength(1);
  });

  it('keeps calls for 400 days or for the configured time, and exports them only to an absolute path', () => {
    expect(loadConfig(stores)).toMatchObject({ usageRetentionDays: 400, exportDir: null });
    const env = { ...stores, USAGE_RETENTION_DAYS: '0', EXPORT_DIR: '/var/exports' };
    expect(loadConfig(env)).toMatchObject({ usageRetentionDays: 0, exportDir: '/var/exports' });
    expect(faultsOf({ ...stores, EXPORT_DIR: 'exports' })).toEqual(['EXPORT_DIR must be an absolute path']);
  });

  it('reports each invalid range together with the other faults', () => {
    const env = { ...stores, PORT: 'x', UPSTREAM_ALLOW_CIDRS: '10.0.0.0/8,10.0.0.0/33, localhost ,fd00::/8' };
    const faults = faultsOf(env);
    expect(faults).toHaveLength(3);
    for (const range of ['10.0.0.0/33', 'localhost']) {
      expect(faults.filter((fault) => fault.startsWith(`UPSTREAM_ALLOW_CIDRS has "${range}"`))).toHaveLength(1);
    }
  });

  it('accepts keys for secrets, keeps their order, and refuses everything else without repeating it', () => {
    const [first, second] = ['a', 'b'].map((fill) => Buffer.alloc(32, fill)) as [Buffer, Buffer];
    const [one, two] = [first.toString('base64'), second.toString('base64')];
    expect(loadConfig({ ...stores, SECRETS_KEY: `${one}, ${two}` }).secretsKeys).toEqual([first, second]);
    expect(loadConfig(stores).secretsKeys).toEqual([]);
    for (const wrong of [
      one.slice(1),
      `${one}=`,
      one.replace('=', ''),
      `-${one.slice(1)}`,
      first.toString('hex'),
      'x',
    ]) {
      const faults = faultsOf({ ...stores, SECRETS_KEY: `${two},${wrong}` });
      expect(faults).toEqual([expect.stringMatching(/^SECRETS_KEY: key 2 is not base64 of 32 bytes/)]);
      if (wrong !== 'x') expect(faults.join()).not.toContain(wrong);
    }
    expect(faultsOf({ ...stores, SECRETS_KEY: `${one},${two},${one}` })).toEqual([
      'SECRETS_KEY: key 3 is the same as an earlier one',
    ]);
  });

  it('refuses an invalid number of workers, and refuses several workers with port 0', () => {
    expect(faultsOf({ ...stores, WORKERS: 'some' })).toEqual(['WORKERS must be auto or a number from 1 to 64']);
    expect(faultsOf({ ...stores, WORKERS: '2', PORT: '0' })).toHaveLength(1);
    expect(loadConfig({ ...stores, PORT: '0' }).workers).toBe(1);
  });

  it('runs as one process only when ONE_PROCESS is on, and refuses ONE_PROCESS with several workers', () => {
    expect(loadConfig(stores).oneProcess).toBe(false);
    expect(loadConfig({ ...stores, ONE_PROCESS: 'on' }).oneProcess).toBe(true);
    expect(faultsOf({ ...stores, ONE_PROCESS: 'on', WORKERS: '2' })).toEqual([
      'ONE_PROCESS=on contradicts WORKERS above 1',
    ]);
    expect(faultsOf({ ...stores, ONE_PROCESS: 'yes' })).toHaveLength(1);
  });

  it('accepts only the known commands, and tells where they are listed', () => {
    expect([undefined, 'writer', 'create-admin', 'help', '--help', '-h'].map(parseCommand)).toEqual([
      'all',
      'writer',
      'create-admin',
      'help',
      'help',
      'help',
    ]);
    for (const wrong of ['reader', 'toString', '']) {
      expect(() => parseCommand(wrong)).toThrow(ConfigError);
      expect(() => parseCommand(wrong)).toThrow('see main.js help');
    }
  });

  it('lists every command in the help', () => {
    const listed = [...helpText().matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name);
    expect(listed.sort()).toEqual(
      [
        'accept-postgres',
        'all',
        'create-admin',
        'gateway',
        'help',
        'migrate',
        'rebuild-sums',
        'reshard',
        'writer',
      ].sort(),
    );
    for (const name of listed) expect(parseCommand(name)).toBe(name);
  });
});

describe('the page for operators', () => {
  const page = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8');

  it.each(Object.entries(SETTINGS))('has %s with its default and description', (name, setting) => {
    const row = page.split('\n').find((line) => line.startsWith(`| \`${name}\` |`));
    expect(row).toContain(setting.description);
    if ('default' in setting && setting.default !== '') expect(row).toContain(`\`${setting.default}\``);
  });
});
