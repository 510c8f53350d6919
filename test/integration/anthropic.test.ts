import type { IncomingMessage, ServerResponse } from 'node:http';
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { bodyOf, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

const WORDS = ['Toll', 'gates ', 'count ', 'every ', 'call', '.'];
const MESSAGES = [{ role: 'user' as const, content: 'What does a tollgate do?' }];
/** Environment variables of somebody who uses the SDK for its own provider. */
const REAL = { key: 'sk-ant-api03-the-real-key', token: 'sk-ant-oat01-the-real-token' };

/** The part of an Anthropic-shaped API that a message needs. */
async function anthropicShaped(request: IncomingMessage, response: ServerResponse): Promise<void> {
  received.push(JSON.stringify([request.url, request.rawHeaders]));
  const body = JSON.parse((await bodyOf(request)).toString('utf8'));
  const usage = { input_tokens: 3, output_tokens: WORDS.length };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: body.model, stop_sequence: null, usage };
  if (request.method !== 'POST' || request.url !== '/v1/messages') {
    response.writeHead(404).end();
    return;
  }
  if (body.stream !== true) {
    const content = [{ type: 'text', text: WORDS.join('') }];
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ ...message, content, stop_reason: 'end_turn' }));
    return;
  }
  response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' });
  const event = (type: string, data: object): void => {
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  };
  event('message_start', { message: { ...message, content: [], stop_reason: null } });
  event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } });
  for (const text of WORDS) event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } });
  event('content_block_stop', { index: 0 });
  event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage });
  event('message_stop', {});
  response.end();
}

let market: Marketplace;
let service: TestService;
let buyer: Key;
let baseURL: string;
/** Request targets and headers as the service received them. */
let received: string[];

beforeAll(async () => {
  market = await Marketplace.start();
  service = await startService((request, response) => {
    anthropicShaped(request, response).catch(() => response.destroy());
  });
  buyer = await market.buyer(1);
  baseURL = market.baseUrl + (await market.service({ endpoint: service.url, price: 0.004 }));
});
beforeEach(() => {
  received = [];
  vi.stubEnv('ANTHROPIC_API_KEY', REAL.key);
  vi.stubEnv('ANTHROPIC_AUTH_TOKEN', REAL.token);
});
afterEach(() => vi.unstubAllEnvs());
afterAll(async () => {
  await market.stop();
  await service.close();
});

const ours = (): string => `${buyer.key_id}:${buyer.secret}`;

/** The SDK sends a key from its environment beside the key it is given: one as X-Api-Key, the other as Authorization. */
const given: [string, () => { apiKey: string } | { authToken: string }][] = [
  ['apiKey', () => ({ apiKey: ours() })],
  ['authToken', () => ({ authToken: ours() })],
];

describe.each(given)(
  'the Anthropic SDK, unchanged, with our key as its %s and real ones in its environment',
  (_, how) => {
    const client = (): Anthropic => new Anthropic({ baseURL, maxRetries: 0, ...how() });
    const nothingLeaked = (): void => {
      expect(received).toHaveLength(1);
      for (const secret of [REAL.key, REAL.token, buyer.secret]) expect(received[0]).not.toContain(secret);
      // The rest of the SDK's request arrived unchanged.
      expect(received[0]).toMatch(/anthropic-version/);
    };

    it('gets a message, the call is charged, and no key reaches the service', async () => {
      const { data, response } = await client()
        .messages.create({ model: 'small', max_tokens: 100, messages: MESSAGES })
        .withResponse();
      expect(data.content).toEqual([{ type: 'text', text: WORDS.join('') }]);
      expect(response.headers.get('x-acf-amount')).toBe('0.004');
      nothingLeaked();
    });

    it('gets a streamed message piece by piece, the call is charged, and no key reaches the service', async () => {
      const before = await market.balance(buyer);
      const stream = client().messages.stream({ model: 'small', max_tokens: 100, messages: MESSAGES });
      const pieces: string[] = [];
      stream.on('text', (text) => pieces.push(text));
      expect((await stream.finalMessage()).stop_reason).toBe('end_turn');
      expect(pieces).toEqual(WORDS);
      nothingLeaked();
      await market.settled();
      expect((await market.balance(buyer)).balance).toBeCloseTo(before.balance - 0.004, 6);
    });
  },
);
