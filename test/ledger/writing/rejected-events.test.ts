import { describe, expect, it } from 'vitest';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { QUIET } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import { expectedBooks, holdOf, newEvent, tailOf } from '../support.ts';
import { ledger, useLedger } from '../use-ledger.ts';

useLedger();

const accounts = [0, 1, 2].map(() => uuidv7());

describe('an event that cannot be stored', () => {
  const rejected = () =>
    ledger.sql<{ fields: string[]; error: string }[]>`SELECT fields, error FROM rejected_events ORDER BY error`;

  it('because it is not an event is put aside whole, and the others are stored', async () => {
    const [before, after] = [newEvent(), newEvent()];
    const errors: object[] = [];
    const good = newEvent({ accountId: before.accountId });
    await ledger.append(before);
    await ledger.appendRaw(before.accountId, 'not-a-uuid', holdOf(good), tailOf(good));
    await ledger.appendRaw(before.accountId, good.usageId, holdOf(good).replace('/x', '/\0'), tailOf(good));
    await ledger.appendRaw(before.accountId, good.usageId, 'x\t\t1\ttombstone', tailOf(good));
    await ledger.store.command('xadd', ledger.store.keys.usage[0] as string, '*', 'hello', 'world');
    await ledger.append(after);
    const writer = ledger.startWriter({ log: { ...QUIET, error: (fields) => void errors.push(fields) } });
    await ledger.drained();
    expect(await ledger.readBooks()).toEqual(expectedBooks([before, after]));
    const rows = await rejected();
    expect(rows).toHaveLength(4);
    expect(rows.map(({ fields }) => fields)).toContainEqual(['hello', 'world']);
    const whole = [good.usageId, holdOf(good).replace('/x', '/\0'), tailOf(good)].join('\t');
    expect(rows.map(({ fields }) => fields)).toContainEqual(['e1', whole]);
    expect(rows.map(({ fields }) => fields)).toContainEqual([
      'e1',
      whole.replace(good.usageId, 'not-a-uuid').replace('\0', 'x'),
    ]);
    await until(() => writer.stats().rejectedEvents === 4);
    expect(errors).toHaveLength(4);
  });

  it.each<[string, string, (whole: string) => string]>([
    ['the event has no version', 'e', (hold) => hold],
    ['neither the event nor its hold has a version', 'e', (hold) => hold.slice(3)],
    ['its hold has no version', 'e1', (hold) => hold.slice(3)],
    ['its hold is of a newer version', 'e1', (hold) => hold.replace('v1', 'v2')],
  ])('because %s is put aside whole', async (_, field, change) => {
    const [good, bad] = [newEvent(), newEvent()];
    const hold = change(holdOf(bad));
    await ledger.appendRaw(bad.accountId, bad.usageId, hold, tailOf(bad), field);
    await ledger.append(good);
    const errors: object[] = [];
    const writer = ledger.startWriter({ log: { ...QUIET, error: (fields) => void errors.push(fields) } });
    await ledger.drained();
    expect(await ledger.readBooks()).toEqual(expectedBooks([good]));
    expect((await rejected()).map(({ fields }) => fields)).toEqual([
      [field, [bad.usageId, hold, tailOf(bad)].join('\t')],
    ]);
    await until(() => writer.stats().rejectedEvents === 1);
    expect(errors).toHaveLength(1);
  });

  it('because a number in it contains a NUL or is too long is put aside and blocks nothing', async () => {
    const [good, bad] = [newEvent(), newEvent()];
    await ledger.appendRaw(bad.accountId, bad.usageId, holdOf(bad).replace(/^v1\t\d+/, 'v1\t1\x002'), tailOf(bad));
    await ledger.appendRaw(bad.accountId, bad.usageId, holdOf(bad), `${'x'.repeat(9_000)}${tailOf(bad)}`);
    await ledger.append(good);
    ledger.startWriter();
    await ledger.drained();
    expect(await ledger.readBooks()).toEqual(expectedBooks([good]));
    const rows = await rejected();
    expect(rows.map(({ error }) => error)).toContain('usage event: amount is not a number: 12');
    expect(rows.map(({ error }) => error.length).sort((a, b) => a - b)[1]).toBe(500);
    expect(rows.map(({ fields }) => fields[1]?.split('\t')[2])).toContain('1\x002');
  });

  it('even in rejected_events is logged in full and blocks nothing', async () => {
    await ledger.sql`ALTER TABLE rejected_events ADD CONSTRAINT test_refuse CHECK (error NOT LIKE '%free is neither%')`;
    try {
      const [good, bad] = [newEvent(), newEvent()];
      const lines: { fields?: readonly string[] }[] = [];
      await ledger.appendRaw(bad.accountId, bad.usageId, holdOf(bad).replace(/^(v1\t\d+\t)/, '$1?'), tailOf(bad));
      await ledger.appendRaw(good.accountId, 'not-a-uuid', holdOf(good), tailOf(good));
      await ledger.append(good);
      const writer = ledger.startWriter({ log: { ...QUIET, error: (fields) => void lines.push(fields) } });
      await ledger.drained();
      expect(await ledger.readBooks()).toEqual(expectedBooks([good]));
      expect(await rejected()).toHaveLength(1);
      await until(() => writer.stats().rejectedEvents === 2);
      expect(lines.filter(({ fields }) => fields?.[1]?.startsWith(bad.usageId))).toHaveLength(1);
    } finally {
      await ledger.sql`ALTER TABLE rejected_events DROP CONSTRAINT test_refuse`;
    }
  });

  it('because Postgres refuses it is found within its batch and put aside', async () => {
    await ledger.sql`ALTER TABLE calls ADD CONSTRAINT test_poison CHECK (path NOT LIKE '/poison%')`;
    try {
      const events = Array.from({ length: 100 }, (_, i) =>
        newEvent({ accountId: accounts[i % 3] as string, path: [17, 18, 63].includes(i) ? `/poison${i}` : `/${i}` }),
      );
      await ledger.append(...events);
      const writer = ledger.startWriter();
      await ledger.drained();
      const good = events.filter(({ path }) => !path.startsWith('/poison'));
      expect(await ledger.readBooks()).toEqual(expectedBooks(good));
      const rows = await rejected();
      expect(rows.map(({ error }) => error)).toEqual(Array(3).fill(expect.stringContaining('test_poison')));
      await until(() => writer.stats().rejectedEvents === 3);
      // Afterwards the writer stores events as usual.
      const next = newEvent();
      await ledger.append(next);
      await ledger.drained();
      expect((await ledger.readBooks()).calls).toHaveLength(98);
    } finally {
      await ledger.sql`ALTER TABLE calls DROP CONSTRAINT test_poison`;
    }
  });

  it('does not affect another event of the same call, whatever their order and shards', async () => {
    await ledger.sql`ALTER TABLE calls ADD CONSTRAINT test_poison CHECK (path NOT LIKE '/poison%')`;
    try {
      const sharing = accounts.slice(0, 2) as [string, string];
      const pairs = [true, false].flatMap((isPoisonFirst) =>
        sharing.map((accountId) => {
          const good = newEvent({ accountId: sharing[0] });
          const bad = { ...good, accountId, path: '/poison' };
          return { good, both: isPoisonFirst ? [bad, good] : [good, bad] };
        }),
      );
      for (const event of pairs.flatMap(({ both }) => both)) await ledger.append(event);
      ledger.startWriter();
      await ledger.drained();
      expect(await ledger.readBooks()).toEqual(expectedBooks(pairs.map(({ good }) => good)));
    } finally {
      await ledger.sql`ALTER TABLE calls DROP CONSTRAINT test_poison`;
    }
  });
});
