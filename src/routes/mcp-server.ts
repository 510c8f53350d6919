import { baseUrlOf } from '../http/base-url.ts';
import { ANY_QUERY, type Route } from '../http/route.ts';
import { CACHE_CONTROL } from '../openapi/headers.ts';
import { json, list, record, TEXT } from '../openapi/schemas.ts';
import { PRODUCT, VERSION } from '../version.ts';

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';

const REMOTE = record('McpRemote', {
  type: { type: 'string', const: 'streamable-http' },
  url: { type: 'string', description: 'The URL of /mcp' },
  headers: list(
    record('McpHeader', {
      name: TEXT,
      description: TEXT,
      isRequired: { type: 'boolean' },
      isSecret: { type: 'boolean' },
    }),
    'What a client asks its user for',
  ),
});
const SERVER = record('McpServer', {
  $schema: TEXT,
  name: TEXT,
  title: TEXT,
  description: TEXT,
  version: TEXT,
  remotes: list(REMOTE),
});

/** `GET /.well-known/mcp/server.json`: the tools at `/mcp` in the format of the MCP registry, for clients that search for them. */
export function mcpServerRoutes({ trustedProxyHops }: { readonly trustedProxyHops: number }): Route[] {
  return [
    {
      method: 'GET',
      path: '/.well-known/mcp/server.json',
      summary: 'Where the tools for agents are, in the format of the MCP registry',
      access: 'anyone',
      fromMemory: true,
      query: ANY_QUERY,
      responses: {
        200: json('The tools', SERVER, serverJson('https://tollgate.example.com'), {
          'Cache-Control': CACHE_CONTROL('no-store'),
        }),
      },
      handle: async (request) => {
        const url = baseUrlOf(request, trustedProxyHops);
        return {
          status: 200,
          // The page depends on `Host`, and behind a proxy on X-Forwarded-Proto: no shared cache may give it to others.
          headers: { 'Cache-Control': 'no-store' },
          body: serverJson(url),
        };
      },
    },
  ];
}

const KEY_HEADER = {
  name: 'Authorization',
  description: 'The API key: Bearer {key_id}:{secret}. POST /api/v1/keys makes one. Finding services needs none.',
  isRequired: false,
  isSecret: true,
};

function serverJson(baseUrl: string): Record<string, unknown> {
  return {
    $schema: SCHEMA,
    name: nameOf(new URL(baseUrl).hostname),
    title: PRODUCT,
    description: 'Find and call HTTP services that are paid per call.',
    version: VERSION,
    remotes: [{ type: 'streamable-http', url: `${baseUrl}/mcp`, headers: [KEY_HEADER] }],
  };
}

/** The registry requires the owner's domain in front, with its labels reversed. An address names no owner. */
function nameOf(hostname: string): string {
  const isDomain = /^(?:[a-z\d-]+\.)+[a-z][a-z\d-]*$/.test(hostname);
  return `${isDomain ? hostname.split('.').reverse().join('.') : 'localhost'}/tollgate`;
}
