// Unmodified clients, and our examples, against one marketplace with the services of the demo.

import { afterAll, beforeAll, describe } from 'vitest';
import { DemoMarket } from './demo-market.ts';
import { exampleTests } from './examples.ts';

let demo: DemoMarket;

beforeAll(async () => {
  demo = await DemoMarket.start();
});
afterAll(() => demo.stop());

describe('examples', () => exampleTests(() => demo));
