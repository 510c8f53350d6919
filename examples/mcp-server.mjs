// @ts-check
// An MCP server that sells its tools through a gateway. Node 20 or newer.
//
//   npm install @modelcontextprotocol/server
//   PORT=8000 node mcp-server.mjs
//
// It is listed with {"protocol": "mcp", "endpoint": "https://mcp.example.com/mcp", "price": 0.002, "only_operations": true,
// "operations": [{"tool": "count_words"}, {"tool": "languages", "price": 0}], …}. The server itself knows nothing of money.

import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';

const LANGUAGES = ['en', 'ja', 'th', 'zh'];
/** @type {import('@modelcontextprotocol/server').StandardSchemaWithJSON<{ text: string, language?: string }>} */
const COUNT = fromJsonSchema({
  type: 'object',
  properties: { text: { type: 'string' }, language: { type: 'string', enum: LANGUAGES } },
  required: ['text'],
});
const NOTHING = fromJsonSchema({ type: 'object', properties: {} });

/** @param {string} text */
const result = (text) => ({ content: [{ type: /** @type {const} */ ('text'), text }] });

// A server of its own for each message: nothing is kept between two of them.
const mcp = createMcpHandler(() => {
  const server = new McpServer({ name: 'word-counter', version: '1.0.0' });
  const count = { description: 'Counts the words of a text', inputSchema: COUNT };
  server.registerTool('count_words', count, ({ text, language = 'en' }) => {
    const words = [...new Intl.Segmenter(language, { granularity: 'word' }).segment(text)];
    return result(String(words.filter(({ isWordLike }) => isWordLike).length));
  });
  const languages = { description: 'The languages that count_words knows', inputSchema: NOTHING };
  server.registerTool('languages', languages, () => result(LANGUAGES.join(' ')));
  return server;
});

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 */
async function answer(request, response) {
  const { method = 'GET', url = '/' } = request;
  const headers = /** @type {Record<string, string>} */ (request.headers);
  const body = method === 'POST' ? { body: Readable.toWeb(request), duplex: 'half' } : {};
  const init = /** @type {RequestInit} */ ({ method, headers, ...body });
  const answered =
    url === '/mcp' ? await mcp.fetch(new Request(`http://server${url}`, init)) : new Response(null, { status: 404 });
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  await pipeline(answered.body ?? [], response);
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    // The caller may have left, which ends what was under way.
    console.error(error.message);
    response.destroy();
  });
});
server.listen(Number(process.env.PORT ?? 8000), '127.0.0.1', () => {
  const address = server.address();
  console.log(`listening on port ${typeof address === 'object' && address !== null ? address.port : ''}`);
});
