// Programs that make a call, as text. Tested by test/web/service-snippets.test.ts, which runs them.

import { type Cost, isByUse, mostOf } from '../cost.ts';
import { type Json, jsonText, parsed, pythonLiteral, scriptLiteral, shellWord } from './service-quote.ts';
import {
  bodyOf,
  headersOf,
  mediaTypeOf,
  type Operation,
  type Pair,
  parametersOf,
  pathOf,
  pathSamples,
  queryOf,
  REST,
} from './service-request.ts';

export type SnippetKind = 'curl' | 'javascript' | 'python' | 'openai' | 'anthropic' | 'mcp' | 'agent';
type Snippet = { readonly kind: SnippetKind; readonly text: string };

export type SnippetOptions = {
  /** `https://host` of the gateway. */
  readonly origin: string;
  readonly service: { readonly id: string; readonly name: string; readonly protocol: string } & Cost;
  /** Null: the listing has no operations. */
  readonly operation: Operation | null;
  /** What a reader has typed instead of the example of the operation; not for MCP servers. */
  readonly typed?: Sample | null;
  /** Null: the program reads it from the environment variable TOLLGATE_KEY. */
  readonly key: string | null;
};

/** A request to a service. */
export type Sample = {
  readonly method: string;
  readonly path: string;
  readonly query: readonly Pair[];
  /** Path and query, encoded. */
  readonly target: string;
  /** Without the type of the body. */
  readonly headers: readonly Pair[];
  readonly body: { readonly value: Json; readonly mediaType: string } | null;
};

type Call = Pick<Sample, 'method' | 'headers' | 'body'> & {
  readonly url: string;
  /** For a call priced by use, in US dollars: the most it may cost. Null: the price is fixed. */
  readonly maxAmount: string | null;
};

export function snippetsOf(options: SnippetOptions): Snippet[] {
  const { service, operation } = options;
  if (service.protocol === 'mcp') {
    return [
      { kind: 'mcp', text: mcpServer(options) },
      { kind: 'agent', text: gatewayServer(options) },
    ];
  }
  const sample = options.typed ?? exampleOf(operation);
  const call = callOf(options, sample);
  const settings = settingsOf(sample.body) ?? settingsOf(exampleOf(operation).body) ?? {};
  const path = operation?.method === 'POST' ? (operation.path ?? '') : '';
  const snippets: Snippet[] = [
    { kind: 'curl', text: curl(call, options.key) },
    { kind: 'javascript', text: javascript(call, options.key) },
    { kind: 'python', text: python(call, options.key) },
  ];
  if (path.endsWith('/v1/chat/completions')) {
    snippets.push({ kind: 'openai', text: openai(call, settings, options.key) });
  }
  if (path.endsWith('/v1/messages')) snippets.push({ kind: 'anthropic', text: anthropic(call, settings, options.key) });
  return [...snippets, { kind: 'agent', text: `${gatewayServer(options)}\n\n${mcpCall(options, sample)}` }];
}

const proxyUrl = ({ origin, service }: SnippetOptions): string => `${origin}/api/v1/proxy/${service.id}`;

function callOf(options: SnippetOptions, { method, target, headers, body }: Sample): Call {
  const maxAmount = maxAmountOf(options.operation ?? options.service);
  return { method, url: proxyUrl(options) + target, headers, body, maxAmount };
}

function exampleOf(operation: Operation | null): Sample {
  if (operation === null) return { method: 'GET', path: '/', query: [], target: '/', headers: [], body: null };
  const method = operation.method ?? 'GET';
  const body = method === 'GET' ? undefined : sampleBody(operation);
  const [path, query] = [samplePath(operation), queryPairs(operation)];
  return {
    method,
    path,
    query,
    target: path + (query.length === 0 ? '' : `?${queryOf(query)}`),
    headers: headersOf(operation),
    body: body === undefined ? null : { value: body, mediaType: mediaTypeOf(operation, body) },
  };
}

/** A lower maximum allows a caller with less money to call, so the programs show where to set it. */
const maxAmountOf = (cost: Cost): string | null =>
  // Short forms of small numbers have an exponent.
  isByUse(cost)
    ? mostOf(cost)
        .toFixed(6)
        .replace(/\.?0+$/, '')
    : null;

// The gateway writes these programs on the thread that serves calls, and a listing may have 262 144 characters of schemas and
// examples. Deep in an example each number is a line with 250 blanks. Without these bounds, one listing produced 95 MB of programs
// and blocked all calls for a second, each time its page was opened.

/** Maximum characters of a body, without and with the blanks of its lines. A longer one is cut, and ends in CUT. */
const MAX_BODY = 4_000;
const MAX_INDENTED_BODY = 16_000;
/** Bounds of a cut body: members of an object or a list, characters of a text, and levels. */
const SHORT = { members: 10, characters: 200, levels: 2 };
/** Maximum characters of a value in the path or the query, and number of parameters in the query. The rest is left out. */
const MAX_VALUE = 500;
const MAX_PAIRS = 20;
const CUT = '…';

function sampleBody(operation: Operation): Json | undefined {
  const body = bodyOf(operation);
  return body === undefined ? undefined : shortened(body);
}

export function shortened(body: Json): Json {
  const isShort = JSON.stringify(body).length <= MAX_BODY && JSON.stringify(body, null, 2).length <= MAX_INDENTED_BODY;
  return isShort ? body : cut(body, 0);
}

function cut(value: Json, level: number): Json {
  if (typeof value === 'string') return cutText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (level === SHORT.levels) return CUT;
  const all = Object.entries(value);
  const kept = all.slice(0, SHORT.members).map(([name, its]) => [cutText(name), cut(its as Json, level + 1)] as const);
  const members = all.length > SHORT.members ? [...kept, [CUT, CUT] as const] : kept;
  return Array.isArray(value) ? members.map(([, its]) => its) : Object.fromEntries(members);
}

const cutText = (text: string): string =>
  text.length > SHORT.characters ? text.slice(0, SHORT.characters) + CUT : text;

/** A name replaces a value that is too long, or that the schema does not suggest. */
function samplePath(operation: Operation): string {
  const samples = Object.entries(pathSamples(operation));
  const short = samples.map(([name, value]) => [name, value.length <= MAX_VALUE ? value : name === REST ? '' : name]);
  return pathOf(operation.path ?? '/', Object.fromEntries(short));
}

/** Parameters without a value are left out, unless they are required. */
const queryPairs = (operation: Operation) =>
  parametersOf(operation, 'query')
    .filter(({ name, value, required }) => name.length + value.length <= MAX_VALUE && (value !== '' || required))
    .slice(0, MAX_PAIRS);

/** For calls priced by use, the head of the answer may say only what is held. */
const HELD = 'That is held. What the call cost is in its record: GET /api/v1/usage/';

function curl({ method, url, headers, body, maxAmount }: Call, key: string | null): string {
  const words = [
    `curl -sS -i ${/[[\]{}]/.test(url) ? '-g ' : ''}${shellWord(url)}`,
    // The shell must expand only the variable.
    `-H ${key === null ? '"Authorization: Bearer $TOLLGATE_KEY"' : shellWord(`Authorization: Bearer ${key}`)}`,
  ];
  if (maxAmount !== null) words.push(`-H 'X-ACF-Max-Amount: ${maxAmount}'`);
  for (const { name, value } of headers) words.push(`-H ${shellWord(`${name}: ${value}`)}`);
  if (method !== (body === null ? 'GET' : 'POST')) words.splice(1, 0, `-X ${method}`);
  if (body !== null) {
    words.push(`-H ${shellWord(`Content-Type: ${body.mediaType}`)}`);
    // `--data` would take a text that begins with @ for the name of a file.
    words.push(`--data-raw ${shellWord(jsonText(body.value))}`);
  }
  const command = words.join(' \\\n  ');
  return maxAmount === null
    ? command
    : `# With X-ACF-Held: true the amount is held. The record has the cost: GET /api/v1/usage/{X-ACF-Usage-Id}\n${command}`;
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: the template belongs to the program that is written
const SCRIPT_BEARER = '`Bearer ${process.env.TOLLGATE_KEY}`';

function javascript({ method, url, headers, body, maxAmount }: Call, key: string | null): string {
  const lines = [`const response = await fetch(${scriptLiteral(url)}, {`];
  if (method !== 'GET') lines.push(`  method: ${scriptLiteral(method)},`);
  lines.push('  headers: {');
  lines.push(`    Authorization: ${key === null ? SCRIPT_BEARER : scriptLiteral(`Bearer ${key}`)},`);
  if (maxAmount !== null) lines.push(`    'X-ACF-Max-Amount': '${maxAmount}',`);
  for (const { name, value } of headers) lines.push(`    ${scriptLiteral(name)}: ${scriptLiteral(value)},`);
  if (body !== null) lines.push(`    'Content-Type': ${scriptLiteral(body.mediaType)},`);
  lines.push('  },');
  if (body !== null) {
    const value = scriptLiteral(body.value, '  ');
    lines.push(typeof body.value === 'string' ? `  body: ${value},` : `  body: JSON.stringify(${value}),`);
  }
  lines.push(
    '});',
    "console.log(response.status, response.headers.get('X-ACF-Amount'));",
    ...(maxAmount === null
      ? []
      : [
          "if (response.headers.get('X-ACF-Held') === 'true') {",
          `  console.log('${HELD}' + response.headers.get('X-ACF-Usage-Id'));`,
          '}',
        ]),
    'console.log(await response.text());',
  );
  return lines.join('\n');
}

function python({ method, url, headers, body, maxAmount }: Call, key: string | null): string {
  const isJson = body !== null && typeof body.value !== 'string';
  const modules = [...(isJson ? ['json'] : []), ...(key === null ? ['os'] : []), 'urllib.error', 'urllib.request'];
  const token = key === null ? '"Bearer " + os.environ["TOLLGATE_KEY"]' : pythonLiteral(`Bearer ${key}`);
  const lines = [`import ${modules.join(', ')}`, '', 'request = urllib.request.Request(', `    ${pythonLiteral(url)},`];
  lines.push(`    method=${pythonLiteral(method)},`, '    headers={', `        "Authorization": ${token},`);
  if (maxAmount !== null) lines.push(`        "X-ACF-Max-Amount": "${maxAmount}",`);
  for (const { name, value } of headers) lines.push(`        ${pythonLiteral(name)}: ${pythonLiteral(value)},`);
  if (body !== null) lines.push(`        "Content-Type": ${pythonLiteral(body.mediaType)},`);
  lines.push('    },');
  if (body !== null) {
    const value = pythonLiteral(body.value, '    ');
    lines.push(isJson ? `    data=json.dumps(${value}).encode(),` : `    data=${value}.encode(),`);
  }
  // urllib raises an exception for a status of 400 or above; the exception has the response.
  lines.push(')', 'try:', '    response = urllib.request.urlopen(request)');
  lines.push('except urllib.error.HTTPError as error:', '    response = error');
  lines.push('print(response.status, response.headers["X-ACF-Amount"])');
  if (maxAmount !== null) {
    lines.push('if response.headers["X-ACF-Held"] == "true":');
    lines.push(`    print("${HELD}" + response.headers["X-ACF-Usage-Id"])`);
  }
  lines.push('print(response.read().decode())');
  return lines.join('\n');
}

const sdkHeaders = (maxAmount: string | null): string =>
  maxAmount === null ? '' : `\n  defaultHeaders: { 'X-ACF-Max-Amount': '${maxAmount}' },`;

const scriptKey = (key: string | null): string => (key === null ? 'process.env.TOLLGATE_KEY' : scriptLiteral(key));

/** What an SDK sends. Null: no object, such as JSON that is typed in half. */
function settingsOf(body: Sample['body']): Json | null {
  const value = typeof body?.value === 'string' ? parsed(body.value) : body?.value;
  return typeof value === 'object' ? (value as Json) : null;
}

function openai({ url, maxAmount }: Call, settings: Json, key: string | null): string {
  return `import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: ${scriptLiteral(url.replace(/\/chat\/completions.*$/s, ''))},
  apiKey: ${scriptKey(key)},
  maxRetries: 0,${sdkHeaders(maxAmount)}
});
const completion = await client.chat.completions.create(${scriptLiteral(settings)});
console.log(completion.choices[0].message.content);`;
}

function anthropic({ url, maxAmount }: Call, settings: Json, key: string | null): string {
  return `import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({
  baseURL: ${scriptLiteral(url.replace(/\/v1\/messages.*$/s, ''))},
  apiKey: ${scriptKey(key)},
  maxRetries: 0,${sdkHeaders(maxAmount)}
});
const message = await client.messages.create(${scriptLiteral(settings)});
console.log(message.content);`;
}

/** The service is itself an MCP server: a client gets its proxy path. */
function mcpServer(options: SnippetOptions): string {
  const name =
    options.service.name
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-+|-+$/g, '') || 'service';
  return mcpConfiguration(name, proxyUrl(options), options.key);
}

/** The gateway as an MCP server. */
const gatewayServer = ({ origin, key }: SnippetOptions): string => mcpConfiguration('tollgate', `${origin}/mcp`, key);

/** The arguments of the gateway's tool for this call. */
function mcpCall({ service, operation }: SnippetOptions, { method, path, query, headers, body }: Sample): string {
  const isKey = ({ name }: Pair): boolean => name.toLowerCase() === 'idempotency-key';
  const [own, idempotencyKey] = [headers.filter((pair) => !isKey(pair)), headers.find(isKey)];
  const given = {
    service_id: service.id,
    method,
    path,
    ...(query.length === 0 ? {} : { query: listed(query) }),
    ...(body === null ? {} : { body: body.value }),
    ...(body === null || (typeof body.value !== 'string' && body.mediaType === 'application/json')
      ? {}
      : { content_type: body.mediaType }),
    ...(own.length === 0 ? {} : { headers: Object.fromEntries(own.map(({ name, value }) => [name, value])) }),
    ...(idempotencyKey === undefined ? {} : { idempotency_key: idempotencyKey.value }),
    max_amount: mostOf(operation ?? service),
  };
  return `call_service ${JSON.stringify(given, null, 2)}`;
}

/** Of a name that occurs more than once, all values. */
function listed(pairs: readonly Pair[]): Record<string, string | string[]> {
  const names = new Set(pairs.map(({ name }) => name));
  return Object.fromEntries(
    Array.from(names, (name) => {
      const values = pairs.filter((pair) => pair.name === name).map(({ value }) => value);
      return [name, values.length === 1 ? (values[0] as string) : values];
    }),
  );
}

const mcpConfiguration = (name: string, url: string, key: string | null): string =>
  JSON.stringify(
    { mcpServers: { [name]: { type: 'http', url, headers: { Authorization: `Bearer ${key ?? 'YOUR_KEY'}` } } } },
    null,
    2,
  );
