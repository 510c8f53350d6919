import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { generateText } from 'ai';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { chat } from '../../scripts/demo/chat.mjs';
import { bodyOf, type Key, startService, type TestService } from '../integration/marketplace.ts';
import { type DemoMarket, textOf } from './demo-market.ts';

const PRICE = 0.004;
const TEXT = 'You said: one two three';
const MESSAGES = [{ role: 'user' as const, content: 'one two three' }];
const ASKED = { model: 'parrot', messages: MESSAGES };
const TO_CLAUDE = { ...ASKED, max_tokens: 100 };

/** The SDKs with their retries as they are by default, and an `Idempotency-Key` for each call, as docs/clients.md has it. */
export function paidOnceTests(demo: () => DemoMarket): void {
  let service: TestService;
  let url: string;
  let buyer: Key;
  /** What the service answers before it does its work: one for each of the next calls. */
  let failures: number[];
  /** The idempotency keys that it has received. */
  let received: (string | undefined)[];

  beforeAll(async () => {
    service = await startService(async (request, response) => {
      const body = (await bodyOf(request)).toString();
      received.push(request.headers['idempotency-key'] as string | undefined);
      const status = failures.shift();
      if (status !== undefined) {
        // The SDKs read it, so no test waits.
        response.writeHead(status, { 'Content-Type': 'application/json', 'Retry-After-Ms': '1' }).end('{}');
        return;
      }
      const callerGone = new AbortController().signal;
      await chat({ request, response, body, callerGone, url: new URL(`/chat${request.url}`, 'http://service.test') });
    });
    const path = await demo().market.service({ endpoint: service.url, name: 'Paid once', price: PRICE });
    url = `${demo().url}${path}/`;
  });
  beforeEach(async () => {
    [failures, received] = [[], []];
    buyer = await demo().market.buyer(1);
  });
  afterAll(() => service.close());

  const openai = (): OpenAI => new OpenAI({ baseURL: `${url}v1`, apiKey: textOf(buyer) });
  const anthropic = (): Anthropic => new Anthropic({ baseURL: url, apiKey: textOf(buyer) });
  const keyed = (key: string) => ({ headers: { 'Idempotency-Key': key } });
  /** How its calls ended and what they cost, the oldest first. */
  const paid = async () =>
    (await demo().market.records(buyer)).map(({ outcome, amount }) => [outcome, amount]).reverse();
  const isReplayed = ({ headers }: Response): boolean => headers.get('idempotent-replayed') === 'true';
  const ONCE = [['completed', PRICE]];
  const RATE_LIMITED = ['refunded:upstream_rate_limited', 0];

  it('openai repeats a 429 of the service by itself, and pays only for the answer; without a key it pays for every try', async () => {
    failures = [429, 429];
    const answer = await openai().chat.completions.create(ASKED, keyed('a'));
    expect(answer.choices[0]?.message.content).toBe(TEXT);
    expect(received).toEqual(['a', 'a', 'a']);
    expect(await paid()).toEqual([RATE_LIMITED, RATE_LIMITED, ...ONCE]);
    // A 409 of the service is an answer: its repeats get it again, and it is paid once.
    failures = [409];
    const refused = openai().chat.completions.create(ASKED, keyed('b'));
    await expect(refused).rejects.toBeInstanceOf(OpenAI.ConflictError);
    expect(received.slice(3)).toEqual(['b']);
    expect(await paid()).toEqual([RATE_LIMITED, RATE_LIMITED, ...ONCE, ...ONCE]);

    buyer = await demo().market.buyer(1);
    failures = [429, 409];
    await openai().chat.completions.create(ASKED);
    expect(await paid()).toEqual([...ONCE, ...ONCE, ...ONCE]);
  });

  it('openai: two requests with one key are charged once, whether sequential or simultaneous', async () => {
    const ask = () => openai().chat.completions.create(ASKED, keyed('a')).withResponse();
    // The later one may be told that the first is under way (409), and is sent again by the SDK.
    const together = await Promise.all([ask(), ask()]);
    const all = [...together, await ask()];
    expect(all.map(({ data }) => data.choices[0]?.message.content)).toEqual([TEXT, TEXT, TEXT]);
    expect(new Set(all.map(({ response }) => response.headers.get('x-acf-usage-id'))).size).toBe(1);
    expect(all.filter(({ response }) => isReplayed(response))).toHaveLength(2);
    expect(received).toEqual(['a']);
    expect(await paid()).toEqual(ONCE);
  });

  it('openai reads a replayed stream as a stream', async () => {
    const read = async () => {
      const { data, response } = await openai()
        .chat.completions.create({ ...ASKED, stream: true }, keyed('s'))
        .withResponse();
      const pieces: string[] = [];
      for await (const { choices } of data) pieces.push(choices[0]?.delta.content ?? '');
      return { pieces, isReplayed: isReplayed(response) };
    };
    const first = await read();
    expect([first.pieces.join(''), first.isReplayed]).toEqual([TEXT, false]);
    expect(await read()).toEqual({ pieces: first.pieces, isReplayed: true });
    expect(await paid()).toEqual(ONCE);
  });

  it('openai sends its idempotencyKey option only if the client has a header for it, and then generates a key by itself', async () => {
    await openai().chat.completions.create(ASKED, { idempotencyKey: 'a' });
    class Client extends OpenAI {
      protected override idempotencyHeader = 'Idempotency-Key';
    }
    const client = new Client({ baseURL: `${url}v1`, apiKey: textOf(buyer) });
    failures = [429];
    await client.chat.completions.create(ASKED);
    await client.chat.completions.create(ASKED);
    for (let i = 0; i < 2; i++) await client.chat.completions.create(ASKED, { idempotencyKey: 'a' });
    const [none, first, again, second, own] = received;
    expect([none, own, received.length]).toEqual([undefined, 'a', 5]);
    expect([first === again, first === second]).toEqual([true, false]);
    expect(await paid()).toEqual([...ONCE, RATE_LIMITED, ...ONCE, ...ONCE, ...ONCE]);
  });

  it('@anthropic-ai/sdk repeats a 429 by itself and pays once, and reads a replayed stream as a stream', async () => {
    failures = [429, 429];
    const ask = () => anthropic().messages.create(TO_CLAUDE, keyed('a')).withResponse();
    const [first, again] = [await ask(), await ask()];
    expect(again.data).toEqual(first.data);
    expect([isReplayed(first.response), isReplayed(again.response)]).toEqual([false, true]);
    expect(await paid()).toEqual([RATE_LIMITED, RATE_LIMITED, ...ONCE]);

    const read = async () => {
      const stream = anthropic().messages.stream(TO_CLAUDE, keyed('s'));
      const pieces: string[] = [];
      stream.on('text', (text) => pieces.push(text));
      const { response } = await stream.withResponse();
      await stream.finalMessage();
      return { pieces, isReplayed: isReplayed(response) };
    };
    const streamed = await read();
    expect([streamed.pieces.join(''), streamed.isReplayed]).toEqual([TEXT, false]);
    expect(await read()).toEqual({ pieces: streamed.pieces, isReplayed: true });
    expect(await paid()).toEqual([RATE_LIMITED, RATE_LIMITED, ...ONCE, ...ONCE]);
  });

  it('ai repeats a 429 by itself and pays once', async () => {
    failures = [429];
    const provider = createOpenAICompatible({ name: 'tollgate', baseURL: `${url}v1`, apiKey: textOf(buyer) });
    const ask = () => generateText({ model: provider('parrot'), prompt: 'one two three', ...keyed('a') });
    const [first, again] = [await ask(), await ask()];
    expect([first.text, again.text, again.response.headers?.['idempotent-replayed']]).toEqual([TEXT, TEXT, 'true']);
    expect(await paid()).toEqual([RATE_LIMITED, ...ONCE]);
  });
}
