// @ts-check
// An agent that knows the address of a gateway and nothing else of it. Through the Model Context Protocol it finds a service, reads how
// to call it, calls it, and reads what that cost. A language model would choose the tools and their arguments; here the code does.

import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const { TOLLGATE_URL: url, TOLLGATE_KEY: key, TOLLGATE_SERVICE: chosen } = process.env;
if (!url || !key) throw new Error('Set TOLLGATE_URL and TOLLGATE_KEY. examples/README.md says how.');

/**
 * @typedef {object} Operation
 * @property {string} method
 * @property {string} path
 * @property {number} price
 * @property {{ query?: object, body?: unknown }} [example]
 */

const client = new Client({ name: 'example-agent', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
// Finding services needs no key. The other tools do: it is sent with every request.
const requestInit = { headers: { Authorization: `Bearer ${key}` } };
await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit }));

/**
 * Uses a tool. A request that was refused for now is sent again: an error of the gateway that says when to come again cost nothing.
 * Any other repetition of `call_service` is another call, and is charged again. If callTool throws, there was no answer and the call
 * may have been charged: ask `get_usage` before you repeat it.
 *
 * @param {string} name
 * @param {Record<string, unknown>} args
 */
async function useTool(name, args) {
  for (let attempt = 1; ; attempt++) {
    const { structuredContent, content } = await client.callTool({ name, arguments: args });
    // Errors of tools that make no call come as text only.
    const text = content[0]?.type === 'text' ? content[0].text : '{}';
    const answer = /** @type {Record<string, unknown>} */ (structuredContent ?? JSON.parse(text));
    if (answer.error === undefined) return answer;
    // For a 402 the message says what the call costs and what the account has. `note` says whether trying again makes sense.
    const waitSeconds = Number(answer.retry_after_seconds ?? 0);
    if (waitSeconds === 0 || attempt === 3) throw new Error(`${answer.error}: ${answer.message} ${answer.note ?? ''}`);
    console.log(`refused with ${answer.status}: trying again in ${waitSeconds} s`);
    await sleep(waitSeconds * 1000);
  }
}

const { tools } = await client.listTools();
console.log(`tools: ${tools.map(({ name }) => name).join(', ')}`);

const found = await useTool('discover_services', { q: 'text statistics', limit: 1 });
const [service] = /** @type {{ id: string }[]} */ (found.services);
const service_id = chosen ?? service?.id;
if (service_id === undefined) throw new Error('No service was found. Set TOLLGATE_SERVICE to the id of one.');

// How to call it, with an example and a price for each operation.
const listing = await useTool('get_service', { service_id });
const [operation] = /** @type {Operation[]} */ (listing.operations);
if (operation === undefined) throw new Error('This service does not say how to call it.');
const { method, path, price, example } = operation;
console.log(`${listing.name}: ${method} ${path} costs $${price}`);

// Never more than the price that was just read.
const call = { service_id, method, path, query: example?.query, body: example?.body, max_amount: price };
const answer = await useTool('call_service', call);
console.log(answer.status, answer.body);
console.log(`paid $${answer.amount}, $${answer.balance} left`);
await client.close();
