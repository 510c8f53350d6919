// `npm test` runs these for a moment, with a fixed seed. `npm run fuzz -- --seconds N [--seed S]` runs them for longer.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Witness } from '../conformance/witness.ts';
import { Marketplace } from '../integration/marketplace.ts';
import { fuzzEdge } from './edge.ts';
import { fuzzParser } from './parser.ts';

const SECONDS = Number(process.env.FUZZ_SECONDS ?? 1.5);
const SEED = Number(process.env.FUZZ_SEED ?? 1);
const TIMEOUT_MS = SECONDS * 1000 + 60_000;

describe('random octets', () => {
  it(
    'in the response parser: it never throws, stays within its input, and gives the same result however the input is cut',
    () => {
      const inputs = fuzzParser(SEED, SECONDS);
      console.log(`parser: ${inputs} inputs, seed ${SEED}`);
      expect(inputs).toBeGreaterThan(0);
    },
    TIMEOUT_MS,
  );

  describe('sent to the gateway', () => {
    let market: Marketplace;
    let witness: Witness;
    beforeAll(async () => {
      market = await Marketplace.start();
      witness = await Witness.open();
    });
    afterAll(async () => {
      await market.stop();
      await witness.close();
    });

    it(
      'do not stop the gateway, and each request that the service sees was sent by a caller and is one call',
      async () => {
        const proxyPath = await market.service({ endpoint: `${witness.url}/base`, price: 0.000001 });
        const run = await fuzzEdge({ market, witness, proxyPath }, SEED, SECONDS);
        console.log(`gateway: ${JSON.stringify(run)}, seed ${SEED}`);
        expect(run.forwarded).toBeGreaterThan(0);
      },
      TIMEOUT_MS,
    );
  });
});
