import type { Described, JsonSchema, Method, Route } from '../http/route.ts';
import type { OperatorDetails } from '../platform/operator.ts';
import { PRODUCT } from '../version.ts';
import { Components } from './components.ts';
import { edgeErrors, errorResponses } from './errors.ts';
import { CALL_HEADERS, EVERY_RESPONSE, FOR_PAGES, headerObjects, responseHeaders } from './headers.ts';
import {
  MCP_DESCRIPTION,
  MCP_MESSAGE,
  MCP_MESSAGE_EXAMPLE,
  MCP_PATH,
  MCP_REQUEST_HEADERS,
  mcpResponses,
} from './mcp.ts';
import { PROXY_METHODS, PROXY_PARAMS, PROXY_PATH, PROXY_REQUEST_HEADERS, proxyResponses } from './proxy.ts';
import { TAGS, tagOf } from './tags.ts';

type Json = Readonly<Record<string, unknown>>;

const DESCRIPTION = `A metered gateway to services that agents can find, call and pay for.

Open an account with \`POST /api/v1/keys\`, find a service with \`GET /api/v1/discover\`, and call it below its \`proxy_path\`
with \`Authorization: Bearer {key_id}:{secret}\`. \`X-ACF-Amount\` says what the call cost.

Amounts are US dollars with at most six decimals. Times are RFC 3339 in UTC. HEAD is answered wherever GET is. Each error
has the shape of \`Error\`: decide by its \`error\`, which never changes.

Agents find the same as tools of the Model Context Protocol at \`POST /mcp\`.`;

/**
 * The OpenAPI document of these routes, of the proxy and of `/mcp`. It is 3.1, because the schemas of that version are plain JSON
 * Schema: the schemas that check requests are used unchanged. OpenAPI 3.0 has its own dialect of schemas.
 *
 * Throws when a route is described in a way that contradicts another.
 *
 * Tested by test/routes/openapi.test.ts, and compared with a running gateway by test/openapi/contract.test.ts.
 */
export function openApiDocument(routes: readonly Route[], operator: OperatorDetails | null): Json {
  const components = new Components();
  const paths: Record<string, Record<string, Json>> = {};
  const add = (path: string, method: Method, operation: Json): void => {
    const template = path.replace(/:([a-z_]+)/g, '{$1}');
    paths[template] ??= {};
    (paths[template] as Record<string, Json>)[method.toLowerCase()] = operation;
  };
  for (const route of routes) if (!route.isPage) add(route.path, route.method, routeOperation(route, components));
  for (const method of PROXY_METHODS) add(PROXY_PATH, method, proxyOperation(method, components));
  add(MCP_PATH, 'POST', mcpOperation(components));
  const { schemas, responses } = components.written();
  return {
    openapi: '3.1.0',
    info: {
      title: PRODUCT,
      version: '1',
      summary: 'An agent service marketplace',
      description: DESCRIPTION,
      ...infoOf(operator ?? {}),
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    // Relative to the URL of the document, so that it is right behind any proxy and no Host header is trusted.
    servers: [{ url: '/', description: 'This gateway' }],
    tags: TAGS.map(({ name, description }) => ({ name, description })),
    paths,
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', bearerFormat: '{key_id}:{secret}', description: 'An API key' },
        cookie: {
          ...{ type: 'apiKey', in: 'cookie', name: 'tollgate-session' },
          description:
            'Of a browser that is signed in; on https __Secure-tollgate-session, and with the port if Host has one',
        },
        apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key', description: 'The same: {key_id}:{secret}' },
      },
      headers: headerObjects({ ...EVERY_RESPONSE, ...FOR_PAGES, ...CALL_HEADERS }),
      schemas,
      responses,
    },
  };
}

function infoOf({ name = 'The operator of this gateway', contact, terms_url: terms }: OperatorDetails): Json {
  const isUrl = contact !== undefined && /^https?:/.test(contact);
  return {
    contact: { name, ...(contact === undefined ? {} : isUrl ? { url: contact } : { email: contact }) },
    ...(terms === undefined ? {} : { termsOfService: terms }),
  };
}

function routeOperation(route: Route, components: Components): Json {
  const { method, path, summary, query, body, params = {}, requestHeaders = {} } = route;
  const errors = errorResponses(path, [...edgeErrors(route), ...(route.errors ?? [])], components);
  const responses = ownResponses(route, components);
  const twice = Object.keys(responses).find((status) => status in errors);
  if (twice !== undefined) throw new Error(`${method} ${path}: ${twice} is both an error and a response of its own`);
  return {
    operationId: operationId(method, path),
    tags: [tagOf(path)],
    summary,
    description: whoMay(route),
    parameters: [
      ...pathParameters(path, params),
      ...queryParameters(query, components),
      ...headerParameters(requestHeaders),
    ],
    ...(body === undefined ? {} : { requestBody: requestBody(body, components, route.rawBody) }),
    security: securityOf(route),
    responses: { ...responses, ...errors },
  };
}

function ownResponses({ path, responses }: Route, components: Components): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(responses).map(([status, { description, headers, content }]) => {
      const media = Object.entries(content ?? {}).map(([type, { schema, example }]) => [
        type,
        { schema: components.schema(schema), example },
      ]);
      return [
        status,
        {
          description,
          headers: responseHeaders(path, headers),
          ...(content === undefined ? {} : { content: Object.fromEntries(media) }),
        },
      ];
    }),
  );
}

function requestBody(
  body: JsonSchema,
  components: Components,
  mediaTypes: readonly string[] = ['application/json'],
): Json {
  const { examples, ...described } = body;
  const [example] = (examples ?? []) as unknown[];
  const media = { schema: components.schema(described), ...(example === undefined ? {} : { example }) };
  return {
    required: Array.isArray(body.required) || body.minProperties !== undefined,
    content: Object.fromEntries(mediaTypes.map((type) => [type, media])),
  };
}

function proxyOperation(method: Method, components: Components): Json {
  const takesBody = method === 'POST' || method === 'PUT' || method === 'PATCH';
  return {
    operationId: operationId(method, PROXY_PATH),
    tags: [tagOf(PROXY_PATH)],
    summary: `Call a service with ${method}`,
    description:
      'Forwards the request to the service, and its answer back. The `X-ACF-*` headers say what the call cost.',
    parameters: [...pathParameters(PROXY_PATH, PROXY_PARAMS), ...headerParameters(PROXY_REQUEST_HEADERS)],
    ...(takesBody
      ? {
          requestBody: {
            description: 'Whatever the service takes',
            content: { '*/*': { schema: {}, example: { text: 'hello' } } },
          },
        }
      : {}),
    security: WITH_KEY,
    responses: proxyResponses(method, components),
  };
}

function mcpOperation(components: Components): Json {
  return {
    operationId: operationId('POST', MCP_PATH),
    tags: [tagOf(MCP_PATH)],
    summary: 'The marketplace as tools for agents',
    description: MCP_DESCRIPTION,
    parameters: headerParameters(MCP_REQUEST_HEADERS),
    requestBody: requestBody({ ...MCP_MESSAGE, examples: [MCP_MESSAGE_EXAMPLE] }, components),
    security: WITH_OR_WITHOUT_KEY,
    responses: mcpResponses(components),
  };
}

/** Stated in words, because many readers of the document are models and people who do not look at `security`. */
const BUCKETS = {
  reads: ' Its token comes from a bucket for reads, which calls do not touch.',
  control:
    ' Its token comes from a bucket of the account for revoking and rotating keys and for sessions, which calls do not touch.',
};

function whoMay(route: Route): string {
  if (route.unmetered) return 'Open to anyone. It takes no token of a rate limit.';
  return roles(route) + (route.bucket === undefined ? '' : BUCKETS[route.bucket]);
}

function roles({ access }: Route): string {
  if (access === 'anyone') return 'Open to anyone; a key is not needed.';
  if (access === 'optional') return 'Works with or without a key. A key that is sent must be valid.';
  if (access === 'cookie') return 'Needs the cookie of a browser that is signed in, and the own Origin.';
  if (access.length > 1) return `Needs a key with the role ${access.slice(0, -1).join(', ')} or ${access.at(-1)}.`;
  return access[0] === 'admin'
    ? 'Needs a key with the role admin.'
    : `Needs a key with the role ${access[0]} or admin.`;
}

/** The caller may send its key in either of two headers: Authorization or X-Api-Key. */
const WITH_KEY: Json[] = [{ key: [] }, { apiKey: [] }];
/** In OpenAPI, an additional empty requirement `{}` means that the request may also come without a key. */
const WITH_OR_WITHOUT_KEY: Json[] = [{}, ...WITH_KEY];

function securityOf({ access }: Route): Json[] {
  if (access === 'anyone') return [];
  if (access === 'cookie') return [{ cookie: [] }];
  return access === 'optional' ? WITH_OR_WITHOUT_KEY : WITH_KEY;
}

function pathParameters(path: string, params: Readonly<Record<string, Described>>): Json[] {
  return [...path.matchAll(/:([a-z_]+)/g)].map(([, name = '']) => {
    const described = params[name];
    if (described === undefined) throw new Error(`${path}: params does not describe ${name}`);
    return parameter('path', name, described, true);
  });
}

function queryParameters(query: JsonSchema | undefined, components: Components): Json[] {
  const required = (query?.required ?? []) as readonly string[];
  return Object.entries((query?.properties ?? {}) as Record<string, JsonSchema>).map(
    ([name, { description, ...schema }]) =>
      parameter(
        'query',
        name,
        { description: String(description ?? ''), schema: components.schema(schema) },
        required.includes(name),
      ),
  );
}

const headerParameters = (headers: Readonly<Record<string, Described>>): Json[] =>
  Object.entries(headers).map(([name, header]) => parameter('header', name, header, false));

function parameter(
  location: string,
  name: string,
  { description, schema, example }: Described,
  required: boolean,
): Json {
  return { name, in: location, required, description, schema, ...(example === undefined ? {} : { example }) };
}

/** 'GET', '/api/v1/keys/:key_id' → 'getKeysByKeyId'. Client generators name their functions after it. */
function operationId(method: string, path: string): string {
  const words = path
    .replace('/api/v1', '')
    .replaceAll('/:', '/by_')
    .split(/[^A-Za-z0-9]/)
    .filter((word) => word !== '');
  if (words.length === 0) return `${method.toLowerCase()}Root`;
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}
