// @ts-check
// The Anthropic SDK with a service that speaks its interface: one answer whole, one as a stream.

import Anthropic from '@anthropic-ai/sdk';
import { apiKey, carefulFetch, findService, printPrice } from './tollgate.mjs';

const client = new Anthropic({
  apiKey,
  // Without /v1: this SDK appends it.
  baseURL: await findService('v1/messages'),
  // The SDK's own retries could pay twice; carefulFetch repeats only what cost nothing.
  maxRetries: 0,
  fetch: carefulFetch,
  // A call that costs more than this is refused with 412, and free.
  defaultHeaders: { 'X-ACF-Max-Amount': '0.01' },
});
/** @type {Anthropic.MessageCreateParamsNonStreaming} */
const request = {
  model: 'parrot',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hello from the Anthropic SDK' }],
};

try {
  const { data, response } = await client.messages.create(request).withResponse();
  for (const block of data.content) if (block.type === 'text') console.log(block.text);
  printPrice(response.headers);

  const streamed = await client.messages.create({ ...request, stream: true }).withResponse();
  for await (const event of streamed.data) {
    if (event.type === 'content_block_delta' && event.delta.type === 'text_delta')
      process.stdout.write(event.delta.text);
  }
  process.stdout.write('\n');
  printPrice(streamed.response.headers);
} catch (error) {
  if (!(error instanceof Anthropic.APIError)) throw error;
  // The message has the gateway's JSON: for a 402 what the call costs and what the account has.
  console.error(error.message);
  process.exitCode = 1;
}
