// @ts-check
// The AI SDK (the package `ai`) with two providers: an answer whole through @ai-sdk/openai-compatible, and a stream through
// @ai-sdk/anthropic.

import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, streamText } from 'ai';
import { apiKey, carefulFetch, findService, printPrice } from './tollgate.mjs';

const options = {
  apiKey,
  // Both providers want /v1 at the end.
  baseURL: `${await findService('chat/completions')}v1`,
  fetch: carefulFetch,
  // A call that costs more than this is refused with 412, and free.
  headers: { 'X-ACF-Max-Amount': '0.01' },
};
const openAiShaped = createOpenAICompatible({ name: 'tollgate', ...options });
const anthropicShaped = createAnthropic(options);

/** The AI SDK's own retries could pay twice; carefulFetch repeats only what cost nothing. */
const maxRetries = 0;

/** @param {unknown} error @returns {never | void} */
function report(error) {
  if (!APICallError.isInstance(error)) throw error;
  // The gateway's JSON: for a 402 what the call costs and what the account has.
  console.error(error.statusCode, error.responseBody);
  process.exitCode = 1;
}

try {
  const whole = await generateText({ model: openAiShaped('parrot'), prompt: 'Hello from the AI SDK', maxRetries });
  console.log(whole.text);
  printPrice(new Headers(whole.response.headers));

  // A stream reports its errors to onError and then ends; it does not throw them.
  const streamed = streamText({
    model: anthropicShaped('parrot'),
    prompt: 'Hello again from the AI SDK',
    maxOutputTokens: 100,
    maxRetries,
    onError: ({ error }) => report(error),
  });
  for await (const text of streamed.textStream) process.stdout.write(text);
  process.stdout.write('\n');
  printPrice(new Headers((await streamed.response).headers));
} catch (error) {
  report(error);
}
