import {
  createMcpHandler,
  type McpHttpHandler,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { Log } from '../observability/log.ts';
import { PRODUCT, VERSION } from '../version.ts';
import type { ToolResult } from './tool-result.ts';
import { INSTRUCTIONS, TOOLS, type ToolName } from './tools.ts';
import type { Visit } from './visit.ts';

/** How often a comment is sent on a silent event stream: intermediaries commonly cut a connection after 30 or 60 s of silence. */
const KEEP_ALIVE_MS = 15_000;
/** How long a client of protocol 2026-07-28 may keep the list of tools, which changes only with a new version of the gateway. */
const TOOLS_TTL_MS = 3_600_000;
const SERVER_INFO = { name: 'tollgate', title: PRODUCT, version: VERSION };

/** Reports the progress of a tool call to the client, if the client asked for it. */
export type Progress = (message: string) => void;

export type RunTool = (
  name: ToolName,
  args: Readonly<Record<string, unknown>>,
  visit: Visit,
  context: { readonly cancelled: AbortSignal; readonly progress: Progress },
) => Promise<ToolResult>;

/**
 * The protocol itself, implemented by the official package. Each message gets its own server, so nothing is kept between two
 * messages and any worker can answer any of them. The package serves both revisions: 2026-07-28, where each request brings its own
 * envelope, and those of 2025, whose `initialize` it answers without opening a session.
 */
export class Protocol {
  readonly #run: RunTool;
  readonly #visits = new WeakMap<Request, Visit>();
  /** Answers with JSON. */
  readonly #short: McpHttpHandler;
  /** Answers with an event stream, on which comments can be sent while a call is under way. */
  readonly #long: McpHttpHandler;

  constructor(run: RunTool, log: Log) {
    this.#run = run;
    const options = {
      keepAliveMs: KEEP_ALIVE_MS,
      // Nothing that a client could subscribe to ever changes, and an open subscription would delay every drain.
      maxSubscriptions: 0,
      onerror: (error: Error) => log.debug({ reason: reasonOf(error) }, 'MCP: a message was refused'),
    };
    const factory = ({ requestInfo }: { requestInfo?: Request }): Server =>
      this.#server(this.#visits.get(requestInfo as Request) as Visit);
    this.#short = createMcpHandler(factory, { ...options, responseMode: 'auto' });
    this.#long = createMcpHandler(factory, { ...options, responseMode: 'sse' });
  }

  /** @param isLong  whether the message may take long to answer */
  handle(visit: Visit, message: unknown, isLong: boolean): Promise<Response> {
    const request = new Request('http://tollgate/mcp', {
      method: 'POST',
      headers: protocolHeaders(visit.head.headers),
      signal: visit.gone,
    });
    this.#visits.set(request, visit);
    return (isLong ? this.#long : this.#short).fetch(request, { parsedBody: message });
  }

  #server(visit: Visit): Server {
    const server = new Server(SERVER_INFO, {
      capabilities: { tools: {} },
      instructions: INSTRUCTIONS,
      cacheHints: { 'tools/list': { ttlMs: TOOLS_TTL_MS, cacheScope: 'public' } },
    });
    // A copy, because the package's types allow it to change the list.
    server.setRequestHandler('tools/list', () => ({ tools: TOOLS.map((tool) => ({ ...tool })) }));
    server.setRequestHandler('tools/call', (request, context) => {
      const { name, arguments: args = {} } = request.params;
      const tool = TOOLS.find((known) => known.name === name);
      if (tool === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${name}.`);
      const progress = progressOf(context);
      return this.#run(tool.name, args, visit, { cancelled: context.mcpReq.signal, progress });
    });
    return server;
  }
}

/**
 * What the log says about a message that the package refuses: only the beginning of its error, because the rest may quote the
 * message, and no stack, because the fault is the caller's.
 */
const reasonOf = ({ name, message }: Error): string => `${name}: ${/^[^:{['"\n]{0,100}/.exec(message)?.[0] ?? ''}`;

/**
 * The headers that the protocol reads. The package need not see the API key. Values that a `Headers` object would refuse are left
 * out; no client sends them.
 */
function protocolHeaders(headers: readonly string[]): Headers {
  const picked = new Headers();
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    const value = headers[i + 1] as string;
    const isRead = name === 'accept' || name === 'content-type' || name.startsWith('mcp-');
    if (isRead && /^[\t\x20-\x7e]*$/.test(value)) picked.append(name, value);
  }
  return picked;
}

/** Each notice has a larger number than the previous one, as the protocol demands: seconds since the request began. */
function progressOf({ mcpReq }: ServerContext): Progress {
  const token = mcpReq._meta?.progressToken;
  if (token === undefined) return () => {};
  const begunAt = performance.now();
  let last = 0;
  return (message) => {
    last = Math.max(last + 0.001, Math.round(performance.now() - begunAt) / 1_000);
    const params = { progressToken: token, progress: last, message };
    // If a notice cannot be sent, nobody waits for it any more.
    mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {});
  };
}
