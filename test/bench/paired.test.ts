import { expect, it } from 'vitest';
import { medianWithInterval, pairedRatios } from '../../bench/measure/paired.mjs';

const blocks = (text: string) => text.split(' ').map((one) => ({ isOn: one[0] === '+', value: Number(one.slice(1)) }));

it('each block is compared with its neighbour, in either order, and a block without a neighbour is left out', () => {
  expect(pairedRatios(blocks('+3 -2 -4 +8 +9 -9'))).toEqual([1.5, 2, 1]);
  expect(pairedRatios(blocks('+3 +6 -2 -5'))).toEqual([3]);
});

it('the interval around the median is narrower than the middle half of the values when there are many values', () => {
  const values = Array.from({ length: 101 }, (_, i) => i);
  expect(medianWithInterval(values)).toEqual({ median: 50, low: 39, high: 61 });
  expect(medianWithInterval(values.map((value) => 100 - value))).toEqual({ median: 50, low: 39, high: 61 });
});
