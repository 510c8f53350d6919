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

  it('because it is no event is put aside whole, and the others are stored', async () => {
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
    expect(rows.map(({ fields }) => fields)).toContainEqual(['e', whole]);
    expect(rows.map(({ fields }) => fields)).toContainEqual([
      'e',
      whole.replace(good.usageId, 'not-a-uuid').replace('\0', 'x'),
    ]);
    await until(() => writer.stats().rejectedEvents === 4);
    expect(errors).toHaveLength(4);
  });

  it('because a number in it contains a NUL or is too long is put aside and blocks nothing', async () => {
    const [good, bad] = [newEvent(), newEvent()];
    await ledger.appendRaw(bad.accountId, bad.usageId, holdOf(bad).replace(/^\d+/, '1\x002'), tailOf(bad));
    await ledger.appendRaw(bad.accountId, bad.usageId, holdOf(bad), `${'x'.repeat(9_000)}${tailOf(bad)}`);
    await ledger.append(good);
    ledger.startWriter();
    await ledger.drained();
    expect(await ledger.readBooks()).toEqual(expectedBooks([good]));
    const rows = await rejected();
    expect(rows.map(({ error }) => error)).toContain('usage event: amount is not a number: 12');
    expect(rows.map(({ error }) => error.length).sort((a, b) => a - b)[1]).toBe(500);
    expect(rows.map(({ fields }) => fields[1]?.split('\t')[1])).toContain('1\x002');
  });

  it('even in rejected_events is logged whole and blocks nothing', async () => {
    await ledger.sql`ALTER TABLE rejected_events ADD CONSTRAINT test_refuse CHECK (error NOT LIKE '%free is neither%')`;
    try {
      const [good, bad] = [newEvent(), newEvent()];
      const lines: { fields?: readonly string[] }[] = [];
      await ledger.appendRaw(bad.accountId, bad.usageId, holdOf(bad).replace('\t', '\t?'), tailOf(bad));
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
});
