import { describe, expect, it } from 'vitest';
import { claimOf } from '../../src/replay/idempotency-key.ts';
import type { Row } from './books.ts';
import type { Told } from './callers.ts';
import type { Asked } from './notebook.ts';
import { checkPairs } from './pairs.ts';
import { type Evidence, judgeRepeats, type Kept } from './repeats.ts';

const row = (usageId: string, more: Partial<Row> = {}): Row =>
  ({
    usageId,
    accountId: 'account',
    keyId: 'acf_key',
    path: '/fast/key-1',
    outcome: 'completed',
    amountMicros: 100,
    admittedAtMs: 10,
    ...more,
  }) as Row;

const told = (requestId: string | null, more: Partial<Told> = {}): Told =>
  ({
    accountId: 'account',
    keyId: 'acf_key',
    idempotencyKey: '1',
    path: '/fast/key-1',
    target: 'GET /x',
    bodyDigest: 'empty',
    requestId,
    usageId: requestId,
    servedId: requestId,
    status: 200,
    code: null,
    complete: true,
    isReplayed: false,
    isHeld: false,
    amountMicros: 100,
    answerDigest: 'answer',
    costs: ['x-acf-amount: 0.0001'],
    atMs: 10,
    endMs: 20,
    ...more,
  }) as Told;

const refused = (requestId: string, code: string, more: Partial<Told> = {}): Told =>
  told(requestId, { usageId: null, servedId: null, status: 422, code, atMs: 15, endMs: 30, ...more });

const first = told('first');
const replay = (more: Partial<Told> = {}): Told =>
  told('second', { usageId: 'first', servedId: 'first', isReplayed: true, ...more });

const { name } = claimOf('acf_key', '1', { method: '', path: '', query: undefined });
const charged: Kept = { state: 'k', usageId: 'first', bodyDigest: 'empty' };

function faults(evidence: Partial<Evidence>, claim: Kept | null = charged): number {
  const given = {
    told: [],
    rows: [row('first')],
    seen: new Set<string>(),
    mayBeForgotten: () => false,
    mayLoseAnswers: false,
    isOrdered: true,
    ...evidence,
  };
  return judgeRepeats(given, new Map(claim === null ? [] : [[name, claim]])).length;
}

describe('the check of repeated calls finds', () => {
  it('no fault if a call was charged once, and repeated', () => {
    expect(faults({ told: [first, replay(), refused('x', 'idempotency_mismatch', { bodyDigest: 'other' })] })).toBe(0);
    expect(faults({ told: [told(null, { usageId: null, complete: false }), replay()] })).toBe(0);
  });

  it('a second charge, unless Redis may have lost the claim', () => {
    const rows = [row('first'), row('second', { admittedAtMs: 30 })];
    // The claim is that of the second one.
    expect(faults({ rows }, { ...charged, usageId: 'second' })).toBe(2);
    const mayBeForgotten = (_: string, usageId: string): boolean => usageId === 'first';
    expect(faults({ rows, mayBeForgotten }, { ...charged, usageId: 'second' })).toBe(0);
  });

  it('a call that was admitted after another one was charged, but not one that was admitted before', () => {
    const givenBack = (admittedAtMs: number): Row => row('second', { outcome: 'refunded:upstream_5xx', admittedAtMs });
    expect(faults({ rows: [row('first'), givenBack(30)] })).toBe(1);
    expect(faults({ rows: [row('first'), givenBack(5)] })).toBe(0);
  });

  it('a claim that does not belong to the charge', () => {
    expect(faults({}, null)).toBe(1);
    expect(faults({}, { ...charged, state: 'o' })).toBe(1);
    expect(faults({ told: [first] }, { ...charged, bodyDigest: 'other' })).toBe(1);
    expect(faults({ rows: [row('first', { outcome: 'abandoned' })] })).toBe(1);
    expect(faults({ rows: [row('first', { outcome: 'abandoned' })] }, null)).toBe(0);
    expect(faults({ rows: [] })).toBe(1);
  });

  it.each<[string, Partial<Told>]>([
    ['body', { answerDigest: 'other' }],
    ['status', { status: 404 }],
    ['cost', { costs: [] }],
    ['amount', { amountMicros: 0 }],
    ['service', { servedId: 'second' }],
    ['request', { bodyDigest: 'other' }],
    ['call', { usageId: 'third', servedId: 'third' }],
  ])('a replay with a different %s', (_, more) => {
    expect(faults({ told: [first, replay(more)] })).toBeGreaterThan(0);
  });

  it('a replay that reached the service, or that has a record', () => {
    expect(faults({ told: [first, replay()], seen: new Set(['second']) })).toBe(1);
    expect(faults({ told: [first, replay()], rows: [row('first'), row('second', { path: '/fast' })] })).toBe(1);
  });

  it('a caller that is refused without a reason', () => {
    for (const code of ['call_in_progress', 'idempotency_mismatch', 'answer_not_kept'])
      expect(faults({ told: [refused('x', code, { bodyDigest: 'other' })] })).toBe(1);
    expect(faults({ told: [first, refused('x', 'idempotency_mismatch')] })).toBe(1);
    expect(faults({ told: [first, refused('x', 'answer_not_kept')] })).toBe(1);
    expect(faults({ told: [first, refused('x', 'answer_not_kept')], mayLoseAnswers: true })).toBe(0);
    expect(faults({ told: [first, refused('x', 'call_in_progress')] })).toBe(0);
    expect(faults({ told: [{ ...first, idempotencyKey: null }, refused('x', 'call_in_progress')] })).toBe(1);
  });
});

describe('the check of pairs', () => {
  const pair = (one: Told, other: Told, ...rows: readonly Row[]): number => {
    const asked = { key: { key_id: 'acf_key' }, wish: { path: '/fast/key-1' } } as Asked;
    return checkPairs([{ asked, answers: [one, other] }], rows, [{ fromMs: 1_000, toMs: 1_020 }]).length;
  };
  const late = { endMs: 990 };
  const abandoned = row('second', { outcome: 'abandoned', amountMicros: 0 });

  it('lets a caller keep the answer of a gateway that was killed just after it, and charges the other', () => {
    expect(pair(first, replay(), row('first'))).toBe(0);
    expect(pair(first, told('second', late), row('first'), abandoned)).toBe(0);
  });

  it('finds two charges, none, an answer for nothing long before a kill or after it, and a kept one', () => {
    expect(pair(first, told('second'), row('first'), row('second'))).toBe(1);
    expect(pair(first, told('second', late), abandoned)).toBe(1);
    expect(pair(first, told('second', late), row('first'))).toBe(1);
    for (const endMs of [600, 1_021]) expect(pair(first, told('second', { endMs }), row('first'), abandoned)).toBe(1);
    const kept = told('third', { usageId: 'second', isReplayed: true, ...late });
    expect(pair(first, kept, row('first'), abandoned)).toBe(1);
  });
});
