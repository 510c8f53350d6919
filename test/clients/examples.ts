import { beforeAll, expect, it, vi } from 'vitest';
import { bodyOf, type Key, startService } from '../integration/marketplace.ts';
import { type DemoMarket, textOf } from './demo-market.ts';
import { type Ended, run } from './programs.ts';

type Example = {
  readonly file: string;
  readonly command: string;
  /** What it prints when all goes well. */
  readonly says: string;
  readonly listing: string;
  readonly calls: number;
};

const buyer = (file: string, command: string): Example => {
  return { file, command, says: 'words', listing: 'Text Statistics', calls: 1 };
};
const sdk = (file: string, says: string): Example => {
  return { file, command: process.execPath, says, listing: 'Parrot', calls: 2 };
};
const BUYERS = [buyer('buyer.sh', 'sh'), buyer('buyer.mjs', process.execPath), buyer('buyer.py', 'python3')];
const EXAMPLES = [
  ...BUYERS,
  buyer('mcp-agent.mjs', process.execPath),
  sdk('openai.mjs', 'You said: Hello from the OpenAI SDK'),
  sdk('anthropic.mjs', 'You said: Hello from the Anthropic SDK'),
  sdk('ai-sdk.mjs', 'You said: Hello again from the AI SDK'),
];

type Trial = { readonly key: Key; readonly ended: Ended };

/**
 * The examples are run as their README says, with nothing but the two variables. They are started together, because most of their time
 * is that of a program that starts.
 */
export function exampleTests(demo: () => DemoMarket): void {
  let limited: Promise<Trial[]>;
  let paid: Trial[];
  let refused: Trial[];

  const start = async ({ command, file }: Example, key: Key): Promise<Trial> => {
    // People copy addresses with a slash at the end.
    const env = { TOLLGATE_URL: `${demo().url}/`, TOLLGATE_KEY: textOf(key) };
    return { key, ended: await run(command, [`examples/${file}`], { env }) };
  };
  const withMoney = async (usd: number): Promise<Trial[]> =>
    Promise.all(EXAMPLES.map(async (example) => start(example, await demo().market.buyer(usd))));
  const trialOf = (trials: readonly Trial[], { file }: Example): Trial =>
    trials[EXAMPLES.findIndex((example) => example.file === file)] as Trial;

  beforeAll(async () => {
    limited = Promise.all(BUYERS.map(async (example) => start(example, await demo().exhausted(60))));
    paid = await withMoney(1);
    refused = await withMoney(0);
    await demo().market.settled();
  });

  it.each(EXAMPLES)('examples/$file finds its service, calls it, and prints what was paid', async (example) => {
    const { key, ended } = trialOf(paid, example);
    expect([ended.code, ended.errors]).toEqual([0, '']);
    expect(ended.output).toContain(example.says);
    const price = demo().priceOf(example.listing);
    expect(ended.output.match(/paid \$\S+(?=,)/g)).toEqual(Array(example.calls).fill(`paid $${price}`));
    const records = await demo().market.records(key);
    const charged = records.map(({ amount, outcome }) => [String(amount), outcome]);
    expect(charged).toEqual(Array(example.calls).fill([price, 'completed']));
  });

  it.each(EXAMPLES)('examples/$file says what is missing when there is no money, and pays nothing', async (example) => {
    const { key, ended } = trialOf(refused, example);
    expect(ended.code).toBe(1);
    expect(ended.output + ended.errors).toMatch(/balance|credit/);
    expect(ended.output).not.toContain('paid $');
    expect(await demo().market.records(key)).toEqual([]);
  });

  it.each([
    ['mjs', process.execPath],
    ['py', 'python3'],
  ])('examples/orchestrator.%s gives each sub-agent a key with fifty cents, and revokes it', async (type, command) => {
    const { market } = demo();
    const [key, poor] = [await market.buyer(1), await market.buyer(0)];
    const start = (by: Key): Promise<Ended> =>
      run(command, [`examples/orchestrator.${type}`], { env: { TOLLGATE_URL: demo().url, TOLLGATE_KEY: textOf(by) } });
    const [ended, refused] = await Promise.all([start(key), start(poor)]);
    expect([ended.code, ended.errors]).toEqual([0, '']);
    expect(ended.output.match(/paid .*/g)).toEqual(Array(2).fill('paid $0.003, $0.497 left'));
    expect([refused.code, refused.output]).toEqual([1, '']);
    expect(refused.errors).toContain('insufficient_balance');
    await market.settled();
    const { by_key } = await market.json<{ by_key: object[] }>('/api/v1/usage', { key });
    const spent = ['researcher', 'writer'].map((label) =>
      expect.objectContaining({ label, calls: 1, spent: 0.003, parent_key_id: key.key_id }),
    );
    expect(by_key).toEqual(expect.arrayContaining(spent));
    const { keys } = await market.json<{ keys: { status: string }[] }>('/api/v1/keys', { key });
    expect(keys.map(({ status }) => status)).toEqual(['revoked', 'revoked', 'active']);
  });

  it.each([
    ['mjs', process.execPath],
    ['py', 'python3'],
  ])('examples/until-answered.%s gets the answer that was lost on the way, and pays once', async (type, command) => {
    const { market } = demo();
    const key = await market.buyer(1);
    let lost = 0;
    // Hands requests on, and cuts the connection of the first two calls when their answer is there.
    const relay = await startService(async (request, response) => {
      const body = await bodyOf(request);
      const { host: _, connection: __, ...headers } = request.headers as Record<string, string>;
      const { method = 'GET', url = '' } = request;
      const answer = await fetch(demo().url + url, { method, headers, ...(method === 'POST' ? { body } : {}) });
      const text = await answer.text();
      if (method === 'POST' && lost < 2) {
        lost += 1;
        request.socket.destroy();
        return;
      }
      const amounts = ['x-acf-amount', 'x-acf-balance'].map((name) => [name, answer.headers.get(name) ?? '']);
      response.writeHead(answer.status, Object.fromEntries(amounts)).end(text);
    });
    const env = { TOLLGATE_URL: relay.url, TOLLGATE_KEY: textOf(key) };
    const ended = await run(command, [`examples/until-answered.${type}`], { env });
    expect([ended.code, ended.errors, lost]).toEqual([0, '', 2]);
    expect(ended.output.match(/no answer: trying again/g)).toHaveLength(2);
    expect(ended.output).toContain('words');
    expect(ended.output).toContain('paid $0.003, $0.997 left');
    const records = await market.records(key);
    expect(records.map(({ amount, outcome }) => [amount, outcome])).toEqual([[0.003, 'completed']]);
    await relay.close();
  });

  it('the example buyers wait as long as a 429 says, and then pay once', async () => {
    for (const { key, ended } of await limited) {
      expect([ended.code, ended.errors]).toEqual([0, '']);
      expect(ended.output).toMatch(/refused with 429[\s\S]*paid \$0\.003,/);
      expect(ended.output).toContain('$0.997 left');
      expect(await demo().admittedCalls(key)).toBe(1);
    }
  });

  it('carefulFetch repeats a refused call, and never repeats a paid call, whatever its status', async () => {
    const { market } = demo();
    const key = await demo().exhausted(60);
    vi.stubEnv('TOLLGATE_URL', demo().url);
    vi.stubEnv('TOLLGATE_KEY', textOf(key));
    const { carefulFetch } = await import('../../examples/tollgate.mjs');
    vi.unstubAllEnvs();
    const headers = { Authorization: `Bearer ${textOf(key)}` };
    const once = await carefulFetch(demo().proxyUrl('Text Statistics'), { headers });
    expect([once.status, once.headers.get('x-acf-balance')]).toEqual([200, '0.997']);

    let asked = 0;
    const busy = await startService((_, response) => {
      asked += 1;
      response.writeHead(429, { 'Retry-After': '1' }).end('too many of you');
    });
    const path = await market.service({ endpoint: busy.url, price: 0.1 });
    const rich = { Authorization: `Bearer ${textOf(await market.buyer(1))}` };
    const charged = await carefulFetch(`${demo().url}${path}/`, { headers: rich });
    expect([charged.status, charged.headers.get('x-acf-amount'), asked]).toEqual([429, '0.1', 1]);
    await busy.close();
  });
}
