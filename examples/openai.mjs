// @ts-check
// The OpenAI SDK with a service that speaks its interface: one answer whole, one as a stream. Only three options are ours.

import OpenAI from 'openai';
import { apiKey, carefulFetch, findService, printPrice } from './tollgate.mjs';

const service = await findService('chat/completions');
const client = new OpenAI({
  apiKey,
  baseURL: `${service}v1`,
  // The SDK's own retries could pay twice; carefulFetch repeats only what cost nothing.
  maxRetries: 0,
  fetch: carefulFetch,
  // A call that costs more than this is refused with 412, and free.
  defaultHeaders: { 'X-ACF-Max-Amount': '0.01' },
});
/** @type {OpenAI.ChatCompletionMessageParam[]} */
const messages = [{ role: 'user', content: 'Hello from the OpenAI SDK' }];

try {
  const { data, response } = await client.chat.completions.create({ model: 'parrot', messages }).withResponse();
  console.log(data.choices[0]?.message.content);
  printPrice(response.headers);

  const streamed = await client.chat.completions.create({ model: 'parrot', messages, stream: true }).withResponse();
  for await (const chunk of streamed.data) process.stdout.write(chunk.choices[0]?.delta.content ?? '');
  process.stdout.write('\n');
  printPrice(streamed.response.headers);
} catch (error) {
  if (!(error instanceof OpenAI.APIError)) throw error;
  // Of the gateway's errors this SDK shows the code only, as in `402 "insufficient_balance"`. What the account has: /api/v1/balance/me.
  console.error(error.message);
  process.exitCode = 1;
}
