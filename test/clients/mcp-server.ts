import { Client as Client2026, StreamableHTTPClientTransport as Transport2026 } from '@modelcontextprotocol/client';
import { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Listening, startListening } from '../support/listening.ts';
import { type DemoMarket, textOf } from './demo-market.ts';

const INFO = { name: 'test', version: '1' };
const WORDS = { name: 'count_words', arguments: { text: 'one two three' } };

/** The example is listed as its first lines say, and called by unmodified clients. */
export function mcpServerTests(demo: () => DemoMarket): void {
  let server: Listening;
  let url: URL;

  beforeAll(async () => {
    server = await startListening('examples/mcp-server.mjs');
    const path = await demo().market.service({
      endpoint: `http://127.0.0.1:${server.port}/mcp`,
      protocol: 'mcp',
      price: 0.002,
      only_operations: true,
      operations: [{ tool: 'count_words' }, { tool: 'languages', price: 0 }],
    });
    url = new URL(demo().url + path);
  });
  afterAll(() => void server.child.kill());

  it.each(['2026-07-28', '2025-11-25'])(
    'charges clients of protocol version %s for paid tools, and answers the rest for free',
    async (pin) => {
      const key = await demo().market.buyer(1);
      const requestInit = { headers: { Authorization: `Bearer ${textOf(key)}` } };
      const client =
        pin === '2026-07-28' ? new Client2026(INFO, { versionNegotiation: { mode: { pin } } }) : new Client2025(INFO);
      if (client instanceof Client2026) await client.connect(new Transport2026(url, { requestInit }));
      else await client.connect(new Transport2025(url, { requestInit }) as Transport);
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(['count_words', 'languages']);
      expect((await client.callTool({ name: 'languages', arguments: {} })).content).toMatchObject([
        { text: 'en ja th zh' },
      ]);
      expect((await client.callTool(WORDS)).content).toMatchObject([{ text: '3' }]);
      await client.close();
      const records = await demo().market.records(key);
      expect(records.filter(({ amount }) => amount > 0)).toMatchObject([{ amount: 0.002, outcome: 'completed' }]);
      expect(await demo().market.balance(key)).toMatchObject({ balance: 0.998, held: 0 });
    },
  );
}
