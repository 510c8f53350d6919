import { expect, it } from 'vitest';
import { medianWithInterval, pairedRatios } from '../../bench/measure/paired.mjs';

const blocks = (text: string) => text.split(' ').map((one) => ({ isOn: one[0] === '+', value: Number(one.slice(1)) }));

it('compares each block with its neighbour, whichever comes first, and leaves out one without', () => {
  expect(pairedRatios(blocks('+3 -2 -4 +8 +9 -9'))).toEqual([1.5, 2, 1]);
  expect(pairedRatios(blocks('+3 +6 -2 -5'))).toEqual([3]);
});

it('says how well it knows the median: half of the values lie outside of what many values leave open', () => {
  const values = Array.from({ length: 101 }, (_, i) => i);
  expect(medianWithInterval(values)).toEqual({ median: 50, low: 39, high: 61 });
  expect(medianWithInterval(values.map((value) => 100 - value))).toEqual({ median: 50, low: 39, high: 61 });
});
