// An agent that knows the marketplace only by its tools: the official clients of both revisions of the protocol, unmodified.

import { Client as Client2026, StreamableHTTPClientTransport as Transport2026 } from '@modelcontextprotocol/client';
import { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { authorization, type Key } from './marketplace.ts';

export const REVISIONS = ['2026-07-28', '2025-11-25'] as const;
type Revision = (typeof REVISIONS)[number];

export type Answer = {
  readonly isError: boolean;
  /** What the text of the result says; it is JSON. */
  readonly text: Record<string, unknown>;
  readonly structured: Record<string, unknown> | undefined;
};

type CallOptions = {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: { progress: number; message?: string | undefined }) => void;
};

export type Agent = {
  /** The revision that client and server agreed on. */
  readonly revision: string | undefined;
  tools(): Promise<readonly { readonly name: string; readonly [field: string]: unknown }[]>;
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<Answer>;
  close(): Promise<void>;
};

export async function agent(revision: Revision, baseUrl: string, key?: Key): Promise<Agent> {
  const url = new URL(`${baseUrl}/mcp`);
  const headers: Record<string, string> = key === undefined ? {} : { Authorization: authorization(key) };
  const info = { name: 'test', version: '1' };
  if (revision === '2026-07-28') {
    const client = new Client2026(info, { versionNegotiation: { mode: { pin: revision } } });
    await client.connect(new Transport2026(url, { requestInit: { headers } }));
    return {
      revision: client.getNegotiatedProtocolVersion(),
      tools: async () => (await client.listTools()).tools,
      call: async (name, args = {}, options = {}) =>
        answerOf(await client.callTool({ name, arguments: args }, options)),
      close: () => client.close(),
    };
  }
  const client = new Client2025(info);
  const transport = new Transport2025(url, { requestInit: { headers } });
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  return {
    revision: transport.protocolVersion,
    tools: async () => (await client.listTools()).tools,
    call: async (name, args = {}, options = {}) =>
      answerOf(await client.callTool({ name, arguments: args }, undefined, options)),
    close: () => client.close(),
  };
}

function answerOf(result: unknown): Answer {
  const { content, structuredContent, isError } = result as {
    content: readonly { readonly text: string }[];
    structuredContent?: Record<string, unknown>;
    isError?: boolean;
  };
  const text = JSON.parse(content[0]?.text ?? 'null') as Record<string, unknown>;
  return { isError: isError === true, text, structured: structuredContent };
}
