import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { APICallError, generateText, type LanguageModel, streamText } from 'ai';
import OpenAI from 'openai';
import { beforeAll, expect, it } from 'vitest';
import type { Key } from '../integration/marketplace.ts';
import { type DemoMarket, textOf } from './demo-market.ts';

const SAID = 'one two three';
const ANSWER = `You said: ${SAID}`;
const MESSAGES = [{ role: 'user' as const, content: SAID }];
/** The pieces in which the service streams its answer. */
const PIECES = ANSWER.match(/\s*\S+/g);

type Seen = { readonly text: string | undefined; readonly amount: string | null | undefined };

/** The SDKs with their own retries off, as docs/clients.md asks, and with nothing else that is not in their documentation. */
export function sdkTests(demo: () => DemoMarket): void {
  let buyer: Key;
  let poor: Key;
  let exhausted: Key;
  let url: string;
  let price: string;

  beforeAll(async () => {
    [buyer, poor, exhausted] = await Promise.all([demo().market.buyer(1), demo().market.buyer(0), demo().exhausted(1)]);
    url = demo().proxyUrl('Parrot');
    price = demo().priceOf('Parrot');
  });

  const openai = (key: Key): OpenAI => new OpenAI({ baseURL: `${url}v1`, apiKey: textOf(key), maxRetries: 0 });
  const anthropic = (key: Key): Anthropic => new Anthropic({ baseURL: url, apiKey: textOf(key), maxRetries: 0 });
  const compatible = (key: Key): LanguageModel =>
    createOpenAICompatible({ name: 'tollgate', baseURL: `${url}v1`, apiKey: textOf(key) })('parrot');
  const anthropicModel = (key: Key): LanguageModel =>
    createAnthropic({ baseURL: `${url}v1`, apiKey: textOf(key) })('parrot');

  it('openai reads an answer, a stream piece by piece, and the price of both', async () => {
    const create = openai(buyer).chat.completions;
    const whole = await create.create({ model: 'parrot', messages: MESSAGES }).withResponse();
    const seen: Seen = {
      text: whole.data.choices[0]?.message.content ?? '',
      amount: whole.response.headers.get('x-acf-amount'),
    };
    expect(seen).toEqual({ text: ANSWER, amount: price });

    const stream_options = { include_usage: true };
    const streamed = await create
      .create({ model: 'parrot', messages: MESSAGES, stream: true, stream_options })
      .withResponse();
    expect(streamed.response.headers.get('x-acf-amount')).toBe(price);
    const pieces: string[] = [];
    let tokens: number | undefined;
    for await (const { choices, usage } of streamed.data) {
      if (choices[0]?.delta.content) pieces.push(choices[0].delta.content);
      tokens = usage?.completion_tokens ?? tokens;
    }
    expect([pieces, tokens]).toEqual([PIECES, PIECES?.length]);
  });

  it('openai maps our errors and those of the service to its own error classes, with our message', async () => {
    const ask = (key: Key, messages = MESSAGES) =>
      openai(key).chat.completions.create({ model: 'parrot', messages }).asResponse();
    const wrong = { ...buyer, secret: poor.secret };
    await expect(ask(wrong)).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
    await expect(ask(exhausted)).rejects.toBeInstanceOf(OpenAI.RateLimitError);
    await expect(ask(poor)).rejects.toMatchObject({
      status: 402,
      message: expect.stringContaining('insufficient_balance'),
    });
    await expect(ask(buyer, [])).rejects.toMatchObject({ status: 400, message: expect.stringContaining('`messages`') });
  });

  it('@anthropic-ai/sdk reads an answer, a stream piece by piece, and the price of both', async () => {
    const request = { model: 'parrot', max_tokens: 100, messages: MESSAGES };
    const whole = await anthropic(buyer).messages.create(request).withResponse();
    expect(whole.data.content).toEqual([{ type: 'text', text: ANSWER }]);
    expect(whole.response.headers.get('x-acf-amount')).toBe(price);

    const stream = anthropic(buyer).messages.stream(request);
    const pieces: string[] = [];
    stream.on('text', (text) => pieces.push(text));
    const { response } = await stream.withResponse();
    expect(response.headers.get('x-acf-amount')).toBe(price);
    expect((await stream.finalMessage()).stop_reason).toBe('end_turn');
    expect(pieces).toEqual(PIECES);
  });

  it('@anthropic-ai/sdk maps our errors and those of the service to its own error classes', async () => {
    const ask = (key: Key, messages = MESSAGES) =>
      anthropic(key).messages.create({ model: 'parrot', max_tokens: 100, messages });
    await expect(ask({ ...buyer, secret: poor.secret })).rejects.toBeInstanceOf(Anthropic.AuthenticationError);
    await expect(ask(exhausted)).rejects.toBeInstanceOf(Anthropic.RateLimitError);
    await expect(ask(poor)).rejects.toMatchObject({ status: 402, error: { error: 'insufficient_balance' } });
    await expect(ask(buyer, [])).rejects.toMatchObject({ error: { error: { type: 'invalid_request_error' } } });
  });

  it.each([
    ['@ai-sdk/openai-compatible', compatible],
    ['@ai-sdk/anthropic', anthropicModel],
  ])('ai with %s reads an answer, a stream piece by piece, the price of both, and an error', async (_, modelOf) => {
    const call = { model: modelOf(buyer), prompt: SAID, maxOutputTokens: 100, maxRetries: 0 };
    const whole = await generateText(call);
    expect([whole.text, whole.response.headers?.['x-acf-amount']]).toEqual([ANSWER, price]);

    const streamed = streamText(call);
    const pieces: string[] = [];
    for await (const piece of streamed.textStream) pieces.push(piece);
    expect([pieces, (await streamed.response).headers?.['x-acf-amount']]).toEqual([PIECES, price]);

    const refused = await generateText({ ...call, model: modelOf(poor) }).catch((error: unknown) => error);
    if (!APICallError.isInstance(refused)) throw refused;
    expect([refused.statusCode, JSON.parse(refused.responseBody ?? '')]).toMatchObject([
      402,
      { error: 'insufficient_balance', required: Number(price), balance: 0 },
    ]);
  });

  it('no SDK pays for a refused call, and each answered call has one record', async () => {
    expect([await demo().admittedCalls(poor), await demo().admittedCalls(exhausted)]).toEqual([0, 0]);
    const records = await demo().market.records(buyer);
    // Two calls of each of the four tests that read answers, and the two 400 of the service, which did its work.
    expect(records.map(({ status }) => status).sort()).toEqual([...Array(8).fill(200), 400, 400]);
    expect(new Set(records.map(({ amount }) => String(amount)))).toEqual(new Set([price]));
  });
}
