import { expect, it } from 'vitest';
import { changeOf, EMPTY_DRAFT, faultsOf, newServiceOf } from '../../web/src/console/provider/listing-draft.ts';
import { operationDraft, operationFaults, operationOf } from '../../web/src/console/provider/operation-draft.ts';
import { comingCost, costWords, mostOf, operationCost } from '../../web/src/cost.ts';

const FROM = '2026-11-24T00:00:00Z';
const byUse = { price: 0.002, max_price: 0.05 };

it('a cost in words includes the maximum if there is one', () => {
  const en = { language: 'en', t: (key: string, values: object) => `${key} ${JSON.stringify(values)}` };
  expect(costWords(byUse, en)).toBe('service.upTo {"price":"$0.002","max":"$0.05"}');
  expect(costWords({ price: 0.002 }, en)).toBe('$0.002');
  expect(costWords({ price: 0.002, max_price: 0.002 }, en)).toBe('$0.002');
  expect([mostOf(byUse), mostOf({ price: 0.002 }), mostOf({ price: 0, max_price: null })]).toEqual([0.05, 0.002, 0]);
});

it('an announcement changes the maximum only if it names an old or a new one', () => {
  const coming = (next: object) => comingCost({ ...byUse, next_price: { from: FROM, price: 0.003, ...next } });
  expect(comingCost(byUse)).toEqual(byUse);
  expect(coming({})).toEqual({ price: 0.003, max_price: 0.05 });
  expect(coming({ max_price: 0.1, old_max_price: 0.05 })).toEqual({ price: 0.003, max_price: 0.1 });
  expect(coming({ old_max_price: 0.05 })).toEqual({ price: 0.003, max_price: undefined });
});

it('an operation with its own price or maximum does not have the maximum of the listing', () => {
  expect(operationCost({}, byUse)).toEqual(byUse);
  expect(operationCost({ price: 0.01 }, byUse)).toEqual({ price: 0.01, max_price: undefined });
  expect(operationCost({ max_price: 0.1 }, byUse)).toEqual({ price: 0.002, max_price: 0.1 });
});

it('the forms of the console send a maximum, remove it again, and keep it at or above the price', () => {
  const draft = { ...EMPTY_DRAFT, price: '0.002', max_price: '0.05' };
  const without = { ...draft, max_price: '' };
  expect(newServiceOf(draft)).toMatchObject(byUse);
  expect(newServiceOf(without)).not.toHaveProperty('max_price');
  expect(changeOf(without, draft)).toEqual({ max_price: null });
  expect(changeOf(draft, without)).toEqual({ max_price: 0.05 });
  expect(faultsOf({ ...draft, max_price: '0.001' }).max_price).toBe('Must be at least the price.');
  const operation = { ...operationDraft(null), summary: 'One', max_price: '0.05' };
  const made = operationOf(operation, false);
  expect(made).toEqual({ method: 'GET', path: '/', summary: 'One', max_price: 0.05 });
  expect(operationDraft(made)).toEqual(operation);
  expect(operationOf({ ...operation, tool: 'x' }, true)).toMatchObject({ tool: 'x', max_price: 0.05 });
  expect(operationFaults(operation, false)).toEqual({});
  expect(operationFaults({ ...operation, price: '0.06' }, false)).toEqual({ max_price: 'Must be at least the price.' });
});
