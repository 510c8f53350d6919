import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Key } from '../integration/marketplace.ts';
import { type Listening, startListening } from '../support/listening.ts';
import { type DemoMarket, textOf } from './demo-market.ts';

const MESSAGES = [{ role: 'user' as const, content: 'one two three' }];
const ANSWER = 'You said: one two three';
/** Five words, and $0.00002 a word. */
const COST = '0.0001';

type Program = Listening & { readonly file: string; readonly proxyPath: string };

/** The examples that sell by use, as their README starts them, called by unmodified SDKs. */
export function priceByUseTests(demo: () => DemoMarket): void {
  const programs = new Map<string, Program>();
  let buyer: Key;

  const start = async (file: string): Promise<Program> => {
    const program = await startListening(`examples/price-by-use/${file}`, { MODEL_URL: demo().endpointOf('Parrot') });
    const endpoint = `http://127.0.0.1:${program.port}`;
    const proxyPath = await demo().market.service({ endpoint, price: 0.00002, max_price: 0.01 });
    return { ...program, file, proxyPath };
  };

  beforeAll(async () => {
    buyer = await demo().market.buyer(1);
    const files = ['tokens.mjs', 'tokens.py', 'seconds.mjs', 'seconds.py'];
    for (const program of await Promise.all(files.map(start))) programs.set(program.file, program);
  });
  afterAll(() => {
    for (const { child } of programs.values()) child.kill();
  });

  const urlOf = (file: string): string => `${demo().url}${programs.get(file)?.proxyPath}/`;
  const newBuyer = (): Promise<Key> => demo().market.buyer(1);
  /** What the records of a key say, the oldest first. */
  const recorded = async (key: Key) => {
    const records = await demo().market.records(key);
    return records.map(({ amount, authorized, outcome }) => [String(amount), String(authorized), outcome]).reverse();
  };

  describe.each(['tokens.mjs', 'tokens.py'])('examples/price-by-use/%s', (file) => {
    it('sells whole answers and streams to the OpenAI SDK by their tokens', async () => {
      const key = await newBuyer();
      const openai = new OpenAI({ baseURL: `${urlOf(file)}v1`, apiKey: textOf(key), maxRetries: 0 });
      const { data, response } = await openai.chat.completions
        .create({ model: 'parrot', messages: MESSAGES })
        .withResponse();
      expect([data.choices[0]?.message.content, response.headers.get('x-acf-amount')]).toEqual([ANSWER, COST]);

      const streamed = await openai.chat.completions
        .create({ model: 'parrot', messages: MESSAGES, stream: true })
        .withResponse();
      const { headers } = streamed.response;
      expect([headers.get('x-acf-amount'), headers.get('x-acf-held')]).toEqual(['0.01', 'true']);
      let text = '';
      // The SDK leaves at `[DONE]`, which comes before the trailer.
      for await (const { choices } of streamed.data) text += choices[0]?.delta.content ?? '';
      expect(text).toBe(ANSWER);
      expect(await recorded(key)).toEqual(Array(2).fill([COST, '0.01', 'completed']));
    });

    it('sells whole answers and streams to the Anthropic SDK by their tokens', async () => {
      const key = await newBuyer();
      const anthropic = new Anthropic({ baseURL: urlOf(file), apiKey: textOf(key), maxRetries: 0 });
      const request = { model: 'parrot', max_tokens: 100, messages: MESSAGES };
      const { data, response } = await anthropic.messages.create(request).withResponse();
      expect([data.content, response.headers.get('x-acf-amount')]).toEqual([[{ type: 'text', text: ANSWER }], COST]);
      const message = await anthropic.messages.stream(request).finalMessage();
      expect([message.content, message.stop_reason]).toMatchObject([[{ text: ANSWER }], 'end_turn']);
      expect(await recorded(key)).toEqual(Array(2).fill([COST, '0.01', 'completed']));
    });

    it('stops at the authorized amount', async () => {
      const key = await newBuyer();
      const defaultHeaders = { 'X-ACF-Max-Amount': '0.00004' };
      const openai = new OpenAI({ baseURL: `${urlOf(file)}v1`, apiKey: textOf(key), maxRetries: 0, defaultHeaders });
      const { choices } = await openai.chat.completions.create({ model: 'parrot', messages: MESSAGES });
      expect([choices[0]?.message.content, choices[0]?.finish_reason]).toEqual(['You said:', 'length']);
      expect(await recorded(key)).toEqual([['0.00004', '0.00004', 'completed']]);
    });

    it('is paid for the whole stream when the caller leaves', async () => {
      const key = await newBuyer();
      const body = JSON.stringify({ model: 'parrot', messages: MESSAGES, stream: true });
      const response = await fetch(`${urlOf(file)}v1/chat/completions`, {
        method: 'POST',
        body,
        headers: { Authorization: `Bearer ${textOf(key)}`, 'Content-Type': 'application/json' },
      });
      const reader = response.body?.getReader();
      await reader?.read();
      await reader?.cancel();
      expect(await recorded(key)).toEqual([[COST, '0.01', 'completed']]);
    });

    it('reports that a request which the model refuses costs nothing', async () => {
      const key = await newBuyer();
      const openai = new OpenAI({ baseURL: `${urlOf(file)}v1`, apiKey: textOf(key), maxRetries: 0 });
      const refused = openai.chat.completions.create({ model: 'parrot', messages: [] });
      await expect(refused).rejects.toMatchObject({ status: 400, message: expect.stringContaining('`messages`') });
      expect(await recorded(key)).toEqual([['0', '0.01', 'completed']]);
    });
  });

  describe.each(['seconds.mjs', 'seconds.py'])('examples/price-by-use/%s', (file) => {
    it('sells its working time, and stops at the authorized amount', async () => {
      const ask = async (seconds: number, ceiling: string) => {
        const response = await fetch(`${urlOf(file)}?seconds=${seconds}`, {
          headers: { Authorization: `Bearer ${textOf(buyer)}`, 'X-ACF-Max-Amount': ceiling },
        });
        const worked = (await response.json()) as { prime: number; seconds: number };
        return { ...worked, amount: Number(response.headers.get('x-acf-amount')) };
      };
      const short = await ask(0.02, '0.01');
      expect(short.prime).toBeGreaterThan(100);
      expect(short.amount).toBeGreaterThanOrEqual(0.0002);
      expect(short.amount).toBeCloseTo(short.seconds * 0.01, 4);
      expect((await ask(60, '0.0005')).amount).toBe(0.0005);
    });
  });
}
