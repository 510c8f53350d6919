import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  budgetsOfHold,
  chargedMicros,
  decodeUsageEvent,
  feeMicros,
  NEWER_EVENT,
  type UsageEvent,
  useOf,
} from '../../src/ledger/usage-event.ts';
import { shares } from '../../src/ledger/writing/stream.ts';
import { MAX_AMOUNT_MICROS } from '../../src/platform/money.ts';
import { holdOf, newEvent, tailOf } from './support.ts';

const decode = (event: UsageEvent) => decodeUsageEvent([event.usageId, holdOf(event), tailOf(event)].join('\t'));

describe('a usage event', () => {
  it('is decoded to what was encoded', () => {
    const event = newEvent({ path: '/a?b="c"\\', outcome: 'refunded:upstream_cut', heldMicros: 0, freeTier: true });
    expect(decode(event)).toEqual(event);
    const failed = newEvent({ outcome: 'refunded:upstream_error', cause: 'tls_expired' });
    expect(decode(failed)).toEqual(failed);
    const tagged = newEvent({ tag: 'Customer-17/eu:a.b@c_d', capMicros: 9, budgets: [{ keyId: 'acf_1', period: 3 }] });
    expect(decode(tagged)).toEqual(tagged);
  });

  it.each<[string, Partial<Record<keyof UsageEvent, unknown>>]>([
    ['an id that is not a UUID', { usageId: 'x' }],
    ['an account that is not a UUID', { accountId: '' }],
    ['a service that is not a UUID', { serviceId: 'NULL' }],
    ['a provider that is not a UUID', { providerId: "'; DROP TABLE calls; --" }],
    ['a tab in the path', { path: '/a\tb' }],
    ['a NUL in the path', { path: '/a\0b' }],
    ['a negative amount', { heldMicros: -1 }],
    ['an amount in another notation', { heldMicros: '1e+14' }],
    ['an amount too large for a number', { heldMicros: '9999999999999999' }],
    ['a status that does not fit', { status: 40_000 }],
    ['an unknown outcome', { outcome: 'done' }],
    ['a cause that is not a word', { cause: 'TLS' }],
    ['a tag with a character that tags cannot have', { tag: 'a b' }],
    ['an empty tag', { tag: '' }],
    ['a tag that is too long', { tag: 'a'.repeat(65) }],
    ['no time', { admittedAtMs: '' }],
  ])('with %s is refused', (_, change) => {
    expect(() => decode({ ...newEvent(), ...change } as UsageEvent)).toThrow('usage event');
  });

  it('is refused if it is a tombstone', () => {
    expect(() => decodeUsageEvent(`${newEvent().usageId}\tx\t\t1\tgateway\t${tailOf(newEvent())}`)).toThrow('fields');
  });

  it.each([
    ['without a version', '', 'fields'],
    ['of a newer version', 'v2\t', 'version: v2'],
  ])('is refused if its hold is %s', (_, version, error) => {
    const event = newEvent();
    const hold = holdOf(event).replace('v1\t', version);
    expect(() => decodeUsageEvent([event.usageId, hold, tailOf(event)].join('\t'))).toThrow(error);
  });

  it('costs the buyer the held amount only when the call completed and was not free', () => {
    expect(chargedMicros(newEvent({ heldMicros: 700 }))).toBe(700);
    expect(chargedMicros(newEvent({ heldMicros: 700, outcome: 'abandoned' }))).toBe(0);
    expect(chargedMicros(newEvent({ heldMicros: 700, outcome: 'refunded:caller_gone' }))).toBe(0);
    expect(chargedMicros(newEvent({ heldMicros: 0, freeTier: true }))).toBe(0);
  });
});

describe('a usage event of a call of a child key', () => {
  const budgets = [
    { keyId: 'acf_1111111111111111111111', period: 3_020_000 },
    { keyId: 'acf_2222222222222222222222', period: 0 },
  ];

  it('is decoded to what was encoded, with or without the fields of a price by use', () => {
    for (const given of [{}, { capMicros: 9, ceilingMicros: 8, capturedMicros: 3 }, { path: '/budgets=a.1' }]) {
      const event = newEvent({ budgets, ...given });
      expect(decode(event)).toEqual(event);
      expect(budgetsOfHold(holdOf(event))).toEqual(budgets);
    }
    expect(budgetsOfHold(holdOf(newEvent({ path: '/budgets=a.1' })))).toEqual([]);
  });

  it.each(['', 'a', 'a.', 'a.b', '.1', 'a.1,', 'a.1.2', 'a.-1', 'a.99999999999999999'])(
    'with the budgets %j is refused',
    (text) => {
      const event = newEvent({ path: '/x' });
      const tail = `${event.usageId}\t${holdOf(event)}\tbudgets=${text}\t${tailOf(event)}`;
      expect(() => decodeUsageEvent(tail)).toThrow(/usage event/);
    },
  );
});

describe('a usage event of a call priced by use', () => {
  const byUse = (given: Partial<UsageEvent>) => newEvent({ capMicros: 50_000, heldMicros: 50_000, ...given });

  it('is decoded to what was encoded, even with a path that looks like one of its fields', () => {
    const lowered = { ceilingMicros: 20_000, heldMicros: 20_000, path: '/cap=1' };
    for (const given of [{}, { capturedMicros: 12_300 }, lowered]) {
      const event = byUse(given);
      expect(decode(event)).toEqual(event);
    }
  });

  it.each<[string, Partial<UsageEvent>, number, ReturnType<typeof useOf>]>([
    ['a report', { capturedMicros: 12_300 }, 12_300, { authorizedMicros: 50_000, isClamped: false, isAtCap: false }],
    ['a report of nothing', { capturedMicros: 0 }, 0, { authorizedMicros: 50_000, isClamped: false, isAtCap: false }],
    [
      'a report of the cap',
      { capturedMicros: 50_000 },
      50_000,
      { authorizedMicros: 50_000, isClamped: false, isAtCap: true },
    ],
    [
      'too high a report',
      { capturedMicros: 50_001 },
      50_000,
      { authorizedMicros: 50_000, isClamped: true, isAtCap: true },
    ],
    [
      'the whole hold, because no report was received',
      {},
      50_000,
      { authorizedMicros: 50_000, isClamped: false, isAtCap: true },
    ],
    [
      'too high a report for its caller',
      { heldMicros: 20_000, ceilingMicros: 20_000, capturedMicros: 50_000 },
      20_000,
      { authorizedMicros: 20_000, isClamped: true, isAtCap: false },
    ],
    [
      'a report of a free call',
      { heldMicros: 0, freeTier: true, ceilingMicros: 20_000, capturedMicros: 50_000 },
      0,
      { authorizedMicros: 20_000, isClamped: false, isAtCap: false },
    ],
    [
      'a report where nothing is held',
      { heldMicros: 0, ceilingMicros: 0, capturedMicros: 1 },
      0,
      { authorizedMicros: 0, isClamped: true, isAtCap: false },
    ],
    [
      'a refund',
      { outcome: 'refunded:upstream_5xx' },
      0,
      { authorizedMicros: 50_000, isClamped: false, isAtCap: false },
    ],
  ])('with %s has the right cost and the right fields', (_, given, charged, use) => {
    const event = decode(byUse(given));
    expect(chargedMicros(event)).toBe(charged);
    expect(useOf(event)).toEqual(use);
  });

  it.each(['cap=', 'cap=-1', 'cap=1e3', 'cap=1\tcap=1', 'cap', '=1', 'Cap=1'])(
    'is refused with %j in its hold',
    (end) => {
      const event = newEvent();
      expect(() => decodeUsageEvent([event.usageId, holdOf(event), end, tailOf(event)].join('\t'))).toThrow(
        'usage event',
      );
    },
  );

  it.each(['captured=', 'captured=99999999999999999', 'captured=1\tcaptured=1', 'captured', ''])(
    'is refused with %j in its settlement',
    (end) => {
      const event = newEvent();
      const text = [event.usageId, holdOf(event), tailOf(event), end].join('\t');
      expect(() => decodeUsageEvent(text)).toThrow('usage event');
      expect(() => decodeUsageEvent(text)).not.toThrow(NEWER_EVENT);
    },
  );

  it('is of a newer version if its hold or its settlement has a field with an unknown name', () => {
    const event = byUse({});
    const hold = [event.usageId, holdOf(event), 'colour=red', tailOf(event)].join('\t');
    const settlement = [event.usageId, holdOf(event), tailOf(event), 'tokens=17'].join('\t');
    for (const text of [hold, settlement]) expect(() => decodeUsageEvent(text)).toThrow(NEWER_EVENT);
  });
});

it('the fee is the exact share, rounded down, for any amount', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: MAX_AMOUNT_MICROS }),
      fc.integer({ min: 0, max: 10_000 }),
      (amount, points) => {
        expect(BigInt(feeMicros(amount, points))).toBe((BigInt(amount) * BigInt(points)) / 10_000n);
      },
    ),
  );
});

describe('a batch', () => {
  const lengths = fc.array(fc.nat(5_000), { minLength: 1, maxLength: 16 });

  it('takes all entries up to its size, and never more of a stream than the stream has', () => {
    fc.assert(
      fc.property(lengths, fc.nat(4_000), (streams, size) => {
        const counts = shares(streams, size);
        const total = streams.reduce((sum, n) => sum + n, 0);
        for (const [i, count] of counts.entries()) expect(count).toBeLessThanOrEqual(streams[i] as number);
        expect(counts.reduce((sum, n) => sum + n, 0)).toBe(Math.min(total, size));
      }),
    );
  });

  it('takes short streams whole, in addition to part of a long one', () => {
    expect(shares([3, 100_000, 0, 40], 1_000)).toEqual([3, 957, 0, 40]);
  });
});
