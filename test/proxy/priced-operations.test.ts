import { expect, it } from 'vitest';
import { refuseOverrides } from '../../src/proxy/priced-operations.ts';

const refuses = (query: string | undefined, headers: readonly string[] = []): boolean => {
  try {
    refuseOverrides({ method: 'POST', headers, query });
    return false;
  } catch {
    return true;
  }
};

// PHP reads the second to fifth as `_method`, qs the sixth, Rack before 3 the seventh.
const OVERRIDES = [
  '_method=PUT',
  '.method=PUT',
  '%2Emethod=PUT',
  '+_method=PUT',
  '_method%00x=PUT',
  '[_method]=PUT',
  'a=1;_method=PUT',
  'a=1&%5Fmethod=PUT',
  '_METHOD=PUT',
  '$httpMethod=PUT',
  '%24httpMethod=PUT',
  '_method[]=PUT',
];
it.each(OVERRIDES)('the query %s, which some framework treats as another method, is refused', (query) => {
  expect(refuses(query)).toBe(true);
});

const ORDINARY = [
  'method=sms',
  'shipping_method=dhl',
  'payment_method[type]=card',
  'q=%E6%9D%B1',
  'a=_method',
  '_methodology=x',
];
it.each(ORDINARY)('the query %s is accepted', (query) => {
  expect(refuses(query)).toBe(false);
});
