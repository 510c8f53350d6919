// @ts-check
// A pretend language model behind the two interfaces that most SDKs speak: OpenAI's chat completions and Anthropic's messages.
// It repeats what it was asked, in small pieces when a stream is wanted, and refuses what the originals refuse in their format,
// so that the examples and the tests can use the real SDKs without an account anywhere else.
//
//   POST …/v1/chat/completions     POST …/v1/messages

import { setTimeout as sleep } from 'node:timers/promises';

/** Time between two pieces of a stream. It is short, and long enough that no two pieces arrive together by accident. */
const pieceIntervalMs = 15;

/**
 * @typedef {object} ChatRequest as either interface sends it, after `readRequest` has checked it
 * @property {string} model
 * @property {{ role: string, content: unknown }[]} messages
 * @property {boolean} [stream]
 * @property {number} [max_tokens] a word is a token
 * @property {{ include_usage?: boolean }} [stream_options] OpenAI only
 *
 * @typedef {object} Answer
 * @property {import('node:http').ServerResponse} response
 * @property {ChatRequest} asked
 * @property {string[]} pieces of the text
 * @property {boolean} isWhole whether the pieces are all that there is to say
 * @property {AbortSignal} callerGone
 */

/** @param {import('./service.mjs').Exchange} exchange */
export async function chat({ request, response, url, body, callerGone }) {
  const isAnthropic = url.pathname === '/chat/v1/messages';
  const fault = isAnthropic ? anthropicFault : openAiFault;
  if (!isAnthropic && url.pathname !== '/chat/v1/chat/completions') return fault(response, 404, 'Unknown request URL.');
  if (request.method !== 'POST') return fault(response, 405, 'Only POST is supported.');
  const asked = readRequest(body);
  if (asked === null) return fault(response, 400, 'The body must be JSON with `model` and `messages`.');
  const words = piecesOf(`You said: ${lastText(asked)}`);
  const pieces = words.slice(0, asked.max_tokens);
  const answer = { response, asked, pieces, isWhole: pieces.length === words.length, callerGone };
  await (isAnthropic ? answerAnthropic(answer) : answerOpenAi(answer));
}

/** @param {string} body @returns {ChatRequest | null} */
function readRequest(body) {
  try {
    const value = JSON.parse(body);
    return typeof value?.model === 'string' && Array.isArray(value.messages) && value.messages.length > 0
      ? value
      : null;
  } catch {
    return null;
  }
}

/** The text of the last message. Both interfaces take a string or a list of parts. @param {ChatRequest} asked */
function lastText({ messages }) {
  const content = messages.at(-1)?.content;
  if (!Array.isArray(content)) return String(content);
  return content.map((/** @type {{ text?: string }} */ part) => part?.text ?? '').join('');
}

/** @param {string} text @returns {string[]} words, each with the blank before it */
const piecesOf = (text) => text.match(/\s*\S+/g) ?? [];

/** @param {import('node:http').ServerResponse} response @param {number} status @param {string} message */
function openAiFault(response, status, message) {
  sendJson(response, status, { error: { message, type: 'invalid_request_error', param: null, code: null } });
}

/** @param {import('node:http').ServerResponse} response @param {number} status @param {string} message */
function anthropicFault(response, status, message) {
  sendJson(response, status, { type: 'error', error: { type: 'invalid_request_error', message } });
}

/** @param {Answer} answer */
async function answerOpenAi({ response, asked, pieces, isWhole, callerGone }) {
  const finish_reason = isWhole ? 'stop' : 'length';
  const head = { id: 'chatcmpl-demo', created: Math.floor(Date.now() / 1000), model: asked.model };
  const usage = { prompt_tokens: asked.messages.length, completion_tokens: pieces.length };
  const total = { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens };
  if (asked.stream !== true) {
    const message = { role: 'assistant', content: pieces.join(''), refusal: null };
    const choices = [{ index: 0, message, logprobs: null, finish_reason }];
    return sendJson(response, 200, { ...head, object: 'chat.completion', choices, usage: total });
  }
  const chunk = (/** @type {object[]} */ choices, /** @type {object} */ more = {}) =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`;
  beginEvents(response);
  for (const content of pieces) {
    response.write(chunk([{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }]));
    await sleep(pieceIntervalMs, undefined, { signal: callerGone });
  }
  response.write(chunk([{ index: 0, delta: {}, finish_reason }]));
  if (asked.stream_options?.include_usage === true) response.write(chunk([], { usage: total }));
  response.end('data: [DONE]\n\n');
}

/** @param {Answer} answer */
async function answerAnthropic({ response, asked, pieces, isWhole, callerGone }) {
  const stop_reason = isWhole ? 'end_turn' : 'max_tokens';
  const usage = { input_tokens: asked.messages.length, output_tokens: pieces.length };
  const message = {
    id: 'msg_demo',
    type: 'message',
    role: 'assistant',
    model: asked.model,
    stop_sequence: null,
    usage,
  };
  if (asked.stream !== true) {
    const content = [{ type: 'text', text: pieces.join('') }];
    return sendJson(response, 200, { ...message, content, stop_reason });
  }
  const event = (/** @type {string} */ type, /** @type {object} */ data) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  beginEvents(response);
  event('message_start', { message: { ...message, content: [], stop_reason: null } });
  event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } });
  for (const text of pieces) {
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } });
    await sleep(pieceIntervalMs, undefined, { signal: callerGone });
  }
  event('content_block_stop', { index: 0 });
  event('message_delta', { delta: { stop_reason, stop_sequence: null }, usage });
  event('message_stop', {});
  response.end();
}

/** @param {import('node:http').ServerResponse} response @param {number} status @param {unknown} value */
function sendJson(response, status, value) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

/** @param {import('node:http').ServerResponse} response */
function beginEvents(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' });
}
