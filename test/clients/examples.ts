import { expect, it } from 'vitest';
import type { Key } from '../integration/marketplace.ts';
import { type DemoMarket, textOf } from './demo-market.ts';
import { type Ended, run } from './programs.ts';

type Example = {
  readonly command: string;
  readonly file: string;
  /** What it prints when all goes well, but for the prices. */
  readonly says: readonly string[];
  readonly listing: string;
  readonly calls: number;
};

const sdk = (file: string, listing: string, ...says: string[]): Example => {
  return { command: process.execPath, file, says, listing, calls: says.length };
};

export const EXAMPLES: readonly Example[] = [
  ...(['sh buyer.sh', `${process.execPath} buyer.mjs`, 'python3 buyer.py'] as const).map((line) => {
    const [command = '', file = ''] = line.split(' ');
    return { command, file, says: ['words'], listing: 'Text Statistics', calls: 1 };
  }),
  sdk('openai.mjs', 'Parrot', 'You said: Hello from the OpenAI SDK', 'You said: Hello from the OpenAI SDK'),
  sdk('anthropic.mjs', 'Parrot', 'You said: Hello from the Anthropic SDK', 'You said: Hello from the Anthropic SDK'),
  sdk('ai-sdk.mjs', 'Parrot', 'You said: Hello from the AI SDK', 'You said: Hello again from the AI SDK'),
];

/** The examples are run as their README says, with nothing but the two variables. */
export function exampleTests(demo: () => DemoMarket): void {
  const start = ({ command, file }: Example, key: Key): Promise<Ended> =>
    run(command, [`examples/${file}`], { env: { TOLLGATE_URL: demo().url, TOLLGATE_KEY: textOf(key) } });

  it.each(EXAMPLES)('examples/$file finds its service, calls it, and prints what was paid', async (example) => {
    const buyer = await demo().market.buyer(1);
    const { code, output, errors } = await start(example, buyer);
    expect([code, errors]).toEqual([0, '']);
    for (const text of example.says) expect(output).toContain(text);
    const price = demo().priceOf(example.listing);
    expect(output.match(/paid \$\S+(?=,)/g)).toEqual(Array(example.calls).fill(`paid $${price}`));
    const records = await demo().market.records(buyer);
    expect(records.map(({ amount, outcome }) => [String(amount), outcome])).toEqual(
      Array(example.calls).fill([price, 'completed']),
    );
  });

  it.each(EXAMPLES)('examples/$file without money says what is missing, and pays nothing', async (example) => {
    const poor = await demo().market.buyer(0);
    const { code, output, errors } = await start(example, poor);
    expect(code).toBe(1);
    expect(output + errors).toMatch(/balance|credit/);
    expect(output).not.toContain('paid $');
    expect(await demo().market.records(poor)).toEqual([]);
  });
}
