// Real MCP servers on free ports, made with the official packages: one of each generation, with the same tools.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { type EventStore, StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CallToolRequestSchema, type JSONRPCMessage, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { bodyOf, startService, type TestService } from './marketplace.ts';

export type McpService = TestService & {
  /** What reached the server, in order: POST with the method of its message, or another HTTP method. */
  readonly seen: string[];
  /** The responses that the server has begun, newest last. */
  readonly responses: ServerResponse[];
  /** Lets the tools that wait go on. */
  release(): void;
  /** Tells all clients that listen that the list of tools has changed. */
  announce(): void;
};

type Work = {
  progress(done: number): Promise<void>;
  released(): Promise<void>;
  /** Ends the stream before the result, which the client has to fetch (2025-11-25 only). */
  leave(): void;
};
type Result = { content: { type: 'text'; text: string }[]; isError?: boolean };

const text = (value: string, isError = false): Result => ({ content: [{ type: 'text', text: value }], isError });

const TOOLS: Readonly<Record<string, (args: { text?: string }, work: Work) => Promise<Result> | Result>> = {
  echo: (args) => text(args.text ?? ''),
  count: async (_args, { progress }) => {
    for (const done of [1, 2, 3]) await progress(done);
    return text('counted');
  },
  fail: () => text('failed', true),
  wait: async (_args, { progress, released }) => {
    await progress(1);
    await released();
    return text('waited');
  },
  leave: async (_args, { progress, released, leave }) => {
    await progress(1);
    leave();
    await released();
    await progress(2);
    return text('came back');
  },
};

/** Waits of tools, until the test releases them all. */
class Gates {
  #open: (() => void)[] = [];
  wait = (): Promise<void> => new Promise((resolve) => this.#open.push(resolve));
  release = (): void => {
    for (const open of this.#open.splice(0)) open();
  };
}

const INFO = { name: 'test server', version: '1' };

/** A server of protocol 2026-07-28: no sessions, one response per message. */
export async function server2026(): Promise<McpService> {
  const gates = new Gates();
  const handler = createMcpHandler(() => {
    const server = new McpServer(INFO);
    for (const [name, run] of Object.entries(TOOLS)) {
      const inputSchema = fromJsonSchema<{ text?: string }>({
        type: 'object',
        properties: { text: { type: 'string' } },
      });
      server.registerTool(name, { inputSchema }, async (args, { mcpReq }) =>
        run(args, {
          progress: (progress) =>
            mcpReq.notify({
              method: 'notifications/progress',
              params: { progressToken: mcpReq._meta?.progressToken as string, progress },
            }),
          released: gates.wait,
          leave() {},
        }),
      );
    }
    return server;
  });
  return serve(gates, handler.notify.toolsChanged, async (request, response, body) => {
    const answer = await handler.fetch(webRequest(request, body));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body !== null) for await (const chunk of answer.body) response.write(chunk);
    response.end();
  });
}

function webRequest({ method = 'GET', url = '/', headers }: IncomingMessage, body: Buffer): Request {
  return new Request(`http://service${url}`, {
    method,
    headers: headers as Record<string, string>,
    ...(body.length > 0 && { body: new Uint8Array(body) }),
  });
}

/** A server of protocol 2025-11-25: with sessions, and with streams that can be resumed. */
export async function server2025(): Promise<McpService> {
  const gates = new Gates();
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const announce = (): void => {
    const message = { jsonrpc: '2.0' as const, method: 'notifications/tools/list_changed' };
    for (const transport of sessions.values()) void transport.send(message);
  };
  return serve(gates, announce, async (request, response, body) => {
    const id = request.headers['mcp-session-id'];
    const known = sessions.get(String(id));
    if (id !== undefined && known === undefined) {
      response.writeHead(404).end();
      return;
    }
    const transport = known ?? (await newSession(gates, sessions));
    await transport.handleRequest(request, response, body.length === 0 ? undefined : JSON.parse(body.toString()));
  });
}

async function newSession(gates: Gates, sessions: Map<string, StreamableHTTPServerTransport>) {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    eventStore: new Events(),
    retryInterval: 10,
    onsessioninitialized: (id) => {
      sessions.set(id, transport);
    },
    onsessionclosed: (id) => {
      sessions.delete(id);
    },
  });
  const server = new Server(INFO, { capabilities: { tools: { listChanged: true } } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: Object.keys(TOOLS).map((name) => ({ name, inputSchema: { type: 'object' as const } })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const run = TOOLS[params.name];
    if (run === undefined) throw new Error(`no tool ${params.name}`);
    const progressToken = extra._meta?.progressToken ?? 0;
    return run(params.arguments ?? {}, {
      progress: (progress) =>
        extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress } }),
      released: gates.wait,
      leave: () => extra.closeSSEStream?.(),
    });
  });
  await server.connect(transport as Transport);
  return transport;
}

/** The events of a session's streams, kept so that a client can resume a stream. */
class Events implements EventStore {
  readonly #events: { readonly stream: string; readonly message: JSONRPCMessage }[] = [];

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    return String(this.#events.push({ stream, message }) - 1);
  }

  async getStreamIdForEventId(id: string): Promise<string | undefined> {
    return this.#events[Number(id)]?.stream;
  }

  async replayEventsAfter(
    last: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const stream = this.#events[Number(last)]?.stream ?? '';
    for (const [id, event] of this.#events.entries()) {
      // A priming event has no message.
      if (id > Number(last) && event.stream === stream && 'jsonrpc' in event.message) {
        await send(String(id), event.message);
      }
    }
    return stream;
  }
}

async function serve(
  gates: Gates,
  announce: () => void,
  answer: (request: IncomingMessage, response: ServerResponse, body: Buffer) => Promise<void>,
): Promise<McpService> {
  const seen: string[] = [];
  const responses: ServerResponse[] = [];
  const service = await startService(async (request, response) => {
    const body = await bodyOf(request);
    const { method } = request;
    seen.push(method === 'POST' ? `POST ${JSON.parse(body.toString()).method}` : String(method));
    responses.push(response);
    await answer(request, response, body);
  });
  return { ...service, seen, responses, release: gates.release, announce };
}
