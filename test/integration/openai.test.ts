import type { IncomingMessage, ServerResponse } from 'node:http';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bodyOf, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

const WORDS = ['Toll', 'gates ', 'count ', 'every ', 'call', ' \u2014 \u4e00\u6b21', '.'];
const TEXT = WORDS.join('');

/** The part of an OpenAI-shaped API that a chat completion needs, as strict as the original. */
async function openAiShaped(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = JSON.parse((await bodyOf(request)).toString('utf8'));
  const fail = (status: number, message: string): void => {
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ error: { message, type: 'invalid_request_error', code: null, param: null } }));
  };
  if (request.method !== 'POST' || request.url !== '/v1/chat/completions') return fail(404, `no ${request.url}`);
  // The key is meant for the gateway and must not reach the service.
  if (request.headers.authorization !== undefined) return fail(400, 'the caller sent its key along');
  if (body.model === 'broken') return fail(500, 'broken');
  const head = { id: 'chatcmpl-1', created: 1_700_000_000, model: body.model };
  const usage = { prompt_tokens: 3, completion_tokens: WORDS.length, total_tokens: 3 + WORDS.length };
  if (body.stream !== true) {
    const message = { role: 'assistant', content: TEXT, refusal: null };
    response.writeHead(200, { 'Content-Type': 'application/json', 'x-request-id': 'theirs' });
    response.end(
      JSON.stringify({
        ...head,
        object: 'chat.completion',
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage,
      }),
    );
    return;
  }
  response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-cache' });
  const event = (delta: object, finish_reason: string | null): string =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  for (const content of WORDS) response.write(event({ role: 'assistant', content }, null));
  response.write(event({}, 'stop'));
  response.end('data: [DONE]\n\n');
}

let market: Marketplace;
let service: TestService;
let buyer: Key;
let path: string;
let openai: OpenAI;

beforeAll(async () => {
  market = await Marketplace.start();
  service = await startService((request, response) => {
    openAiShaped(request, response).catch(() => response.destroy());
  });
  buyer = await market.buyer(1);
  path = await market.service({ endpoint: `${service.url}/v1`, price: 0.004 });
  openai = clientOf(buyer);
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

const clientOf = (key: Key): OpenAI =>
  new OpenAI({ baseURL: market.baseUrl + path, apiKey: `${key.key_id}:${key.secret}`, maxRetries: 0 });
const MESSAGES = [{ role: 'user' as const, content: 'What does a tollgate do?' }];

describe('the OpenAI SDK, unchanged, with a proxy path as its base URL', () => {
  it('gets a chat completion, and the call is charged', async () => {
    const { data, response } = await openai.chat.completions
      .create({ model: 'small', messages: MESSAGES })
      .withResponse();
    expect(data.choices[0]?.message.content).toBe(TEXT);
    expect(data.usage?.total_tokens).toBe(10);
    expect(response.headers.get('x-acf-amount')).toBe('0.004');
    expect(response.headers.get('x-acf-balance')).toBe('0.996');
  });

  it('gets a streamed chat completion piece by piece, and the call is charged', async () => {
    const stream = await openai.chat.completions.create({ model: 'small', messages: MESSAGES, stream: true });
    const pieces: string[] = [];
    let finished: string | null = null;
    for await (const chunk of stream) {
      const choice = chunk.choices[0];
      if (choice?.delta.content) pieces.push(choice.delta.content);
      finished = choice?.finish_reason ?? finished;
    }
    expect(pieces).toEqual(WORDS);
    expect(finished).toBe('stop');
    const records = await market.records(buyer);
    expect(records.map(({ outcome, amount, status }) => [outcome, amount, status])).toEqual([
      ['completed', 0.004, 200],
      ['completed', 0.004, 200],
    ]);
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.992, held: 0 });
  });

  it('recognises errors: a wrong key, no money, too many requests, a broken service', async () => {
    const create = (client: OpenAI, model = 'small') => client.chat.completions.create({ model, messages: MESSAGES });
    const poor = await market.buyer(0);
    const hasty = await market.buyer(1);
    const body = { rate_limit: 1 };
    await market.json(`/api/v1/keys/${hasty.key_id}`, { key: market.admin, method: 'PATCH', body });
    await create(clientOf(hasty));
    await expect(create(clientOf({ ...buyer, secret: poor.secret }))).rejects.toBeInstanceOf(
      OpenAI.AuthenticationError,
    );
    await expect(create(clientOf(poor))).rejects.toMatchObject({ status: 402 });
    await expect(create(clientOf(hasty))).rejects.toBeInstanceOf(OpenAI.RateLimitError);
    await expect(create(openai, 'broken')).rejects.toBeInstanceOf(OpenAI.InternalServerError);
    await market.settled();
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.992, held: 0 });
  });

  it('pays for a stream that it stops reading', async () => {
    const reader = await market.buyer(1);
    const stream = await clientOf(reader).chat.completions.create({ model: 'small', messages: MESSAGES, stream: true });
    for await (const _ of stream) break;
    stream.controller.abort();
    const [record] = await market.records(reader);
    expect(record).toMatchObject({ outcome: 'completed', amount: 0.004 });
  });
});
