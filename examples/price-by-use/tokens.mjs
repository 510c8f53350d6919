// @ts-check
// A service in front of a language model that is paid by the token: it passes on OpenAI's chat completions and Anthropic's messages.
// Node 20 or newer, nothing to install.
//
//   MODEL_URL=http://127.0.0.1:9000 PORT=8000 node tokens.mjs

import { createServer } from 'node:http';
import process from 'node:process';
import { json } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const USD_PER_TOKEN = 0.00002;

/** What an answer costs: the model writes the number of tokens into it, and at the end of a stream. @param {string} answer */
function costOf(answer) {
  const tokens = /.*"(?:completion|output)_tokens":\s*(\d+)/s.exec(answer)?.[1] ?? 0;
  return { 'X-ACF-Charge': (Number(tokens) * USD_PER_TOKEN).toFixed(6) };
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {string} modelUrl
 */
export async function sellTokens(request, response, modelUrl) {
  // What is authorized pays for so many tokens. The model stops there.
  const most = Math.floor(Number(request.headers['x-acf-authorized'] ?? 0) / USD_PER_TOKEN + 1e-6);
  const asked = /** @type {any} */ (await json(request));
  const sent = { ...asked, max_tokens: Math.min(asked.max_tokens ?? most, most) };
  // Without this option, OpenAI's streams do not say how many tokens there were.
  if (asked.stream && request.url?.endsWith('/chat/completions')) sent.stream_options = { include_usage: true };
  // The gateway closes the connection when nobody will pay for more.
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const ask = { method: 'POST', body: JSON.stringify(sent), headers: { 'Content-Type': 'application/json' } };
  const model = await fetch(modelUrl + request.url, { ...ask, signal: gone.signal });
  const headers = { 'Content-Type': model.headers.get('content-type') ?? 'text/plain' };
  if (!asked.stream || !model.ok || model.body === null) {
    const answer = await model.text();
    return response.writeHead(model.status, { ...headers, ...costOf(answer) }).end(answer);
  }
  // The cost of a stream is known at its end, so a trailer reports it. If the caller leaves before, the gateway reads on.
  response.writeHead(model.status, { ...headers, Trailer: 'X-ACF-Charge' });
  let answer = '';
  for await (const piece of model.body.pipeThrough(new TextDecoderStream())) {
    answer += piece;
    response.write(piece);
  }
  response.addTrailers(costOf(answer));
  return response.end();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const modelUrl = process.env.MODEL_URL ?? '';
  if (modelUrl === '') throw new Error('MODEL_URL is not set');
  const server = createServer((request, response) => {
    sellTokens(request, response, modelUrl).catch((error) => {
      if (response.destroyed) return;
      console.error(error);
      // Both are refunded: a 502, and a response that is cut.
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    });
  });
  server.listen(Number(process.env.PORT ?? 8000), '127.0.0.1', () => {
    const address = server.address();
    console.log(`listening on port ${typeof address === 'object' && address !== null ? address.port : ''}`);
  });
}
