// The programs that the page of a service shows, run against a gateway.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serveDemo } from '../../scripts/demo/service.mjs';
import type { Operation } from '../../web/src/site/service-request.ts';
import { type Sample, type SnippetKind, type SnippetOptions, snippetsOf } from '../../web/src/site/service-snippets.ts';
import { formOf, sampleOf, type TryForm } from '../../web/src/site/try-form.ts';
import { echo, type Key, Marketplace, startService, type TestService } from '../integration/marketplace.ts';
import { scratchDir } from '../support/stores.ts';

const run = promisify(execFile);
const HOSTILE = `it's "quoted" \\ $HOME \`id\` @file %41 &<b>\n{a} 😀`;

const priced = { price: 0.002, price_label: '$0.002 per call' };
const json: Operation = {
  ...priced,
  method: 'PUT',
  path: '/notes/{name}',
  input: { properties: { path: { properties: { name: { type: 'string', default: HOSTILE } } } } },
  example: { query: { [HOSTILE]: HOSTILE, n: 5 }, body: { [HOSTILE]: [HOSTILE, null, true, 1.5], empty: {} } },
};
const NOTE = `it's "$HOME" \\ \`id\` %41 @x`;
const keyed: Operation = {
  ...priced,
  method: 'GET',
  path: '/keyed',
  input: { properties: { headers: { properties: { 'X-Note': { default: NOTE } }, required: ['X-Note'] } } },
};
const plain: Operation = { ...priced, method: 'POST', path: '/*', example: { body: `@${HOSTILE}` } };
const search: Operation = {
  ...priced,
  max_price: 0.05,
  method: 'GET',
  path: '/search',
  example: { query: { 'a[]': HOSTILE } },
};

const RUN = {
  curl: ['sh', '-c'],
  javascript: [process.execPath, '--input-type=module', '-e'],
  python: ['python3', '-c'],
} as const;
const KINDS = ['curl', 'javascript', 'python'] as const;

/** @param key  in the environment @returns what the program prints */
async function printed(kind: SnippetKind, text: string, key: string | null): Promise<string> {
  const [command, ...words] = RUN[kind as keyof typeof RUN];
  const env = { ...process.env, ...(key === null ? {} : { TOLLGATE_KEY: key }) };
  return (await run(command, [...words, text], { env })).stdout;
}

describe('the programs that call a service', () => {
  let market: Marketplace;
  let service: TestService;
  let buyer: Key;
  let shown: SnippetOptions['service'];

  beforeAll(async () => {
    [market, service] = await Promise.all([Marketplace.start(), startService(echo)]);
    const proxy = await market.service({ endpoint: service.url, name: HOSTILE.replace('\n', ''), price: 0.002 });
    shown = { id: proxy.split('/').at(-1) ?? '', name: HOSTILE, protocol: 'http', price: 0.002 };
    buyer = await market.buyer(1);
  });
  afterAll(async () => {
    await market?.stop();
    await service?.close();
  });

  const program = (
    kind: SnippetKind,
    operation: Operation,
    key: string | null = null,
    typed: Sample | null = null,
  ): string =>
    snippetsOf({ origin: market.baseUrl, service: shown, operation, key, typed }).find((its) => its.kind === kind)
      ?.text ?? '';

  /** @returns what the service got */
  const received = async (
    kind: SnippetKind,
    operation: Operation,
    key: string | null = null,
    typed: Sample | null = null,
  ) => {
    const secret = `${buyer.key_id}:${buyer.secret}`;
    const text = program(kind, operation, key === null ? null : secret, typed);
    const stdout = await printed(kind, text, key === null ? secret : null);
    const got = JSON.parse(stdout.slice(stdout.indexOf('{'))) as {
      method: string;
      url: string;
      headers: string[];
      body: string;
    };
    return { ...got, url: decodeURIComponent(got.url), body: Buffer.from(got.body, 'latin1').toString() };
  };

  it.each(KINDS)('say why a call was refused: %s', async (kind) => {
    const stdout = await printed(kind, program(kind, search), 'acf_unknown');
    expect(stdout).toContain('401');
    expect(stdout).toContain('"error":"unauthorized"');
  });

  it.each(KINDS)('send what the example says, whatever it contains: %s', async (kind) => {
    const [first, second, third, fourth] = await Promise.all([
      received(kind, json),
      received(kind, plain, 'in the program'),
      received(kind, search),
      received(kind, keyed),
    ]);
    expect(first).toMatchObject({ method: 'PUT', url: `/notes/${HOSTILE}?${HOSTILE}=${HOSTILE}&n=5` });
    expect(JSON.parse(first.body)).toEqual(json.example?.body);
    expect(second).toMatchObject({ method: 'POST', url: '/', body: `@${HOSTILE}` });
    expect(third).toMatchObject({ method: 'GET', url: `/search?a[]=${HOSTILE}`, body: '' });
    const names = fourth.headers.map((name) => name.toLowerCase());
    expect(fourth.headers[names.indexOf('x-note') + 1]).toBe(NOTE);
  });

  it.each(KINDS)('send what was typed in the form instead, without credentials: %s', async (kind) => {
    const form: TryForm = {
      ...formOf({ ...shown, operations: [], proxy_path: `/api/v1/proxy/${shown.id}` } as never, json),
      values: { name: 'rome' },
      query: [{ name: 'day', value: HOSTILE, isDeclared: false, required: false }],
      headers: [
        { name: 'X-Note', value: 'replaced' },
        { name: ' X-Note ', value: ` ${NOTE} ` },
        { name: '', value: '' },
        { name: 'content-type', value: 'application/json' },
      ],
      body: JSON.stringify({ typed: HOSTILE }),
      credentials: { 'x-secret': 'secret' },
    };
    const got = await received(kind, json, null, sampleOf(form));
    expect(got).toMatchObject({ method: 'PUT', url: `/notes/rome?day=${HOSTILE}` });
    expect(JSON.parse(got.body)).toEqual({ typed: HOSTILE });
    const header = (name: string): string | undefined =>
      got.headers[got.headers.findIndex((its) => its.toLowerCase() === name) + 1];
    expect([header('x-note'), header('content-type')]).toEqual([NOTE, 'application/json']);
    expect(got.headers).not.toContain('secret');
    // As a path with its query, where a listing has no operations; the body is no JSON.
    const free = formOf({ ...shown, operations: [] } as never, null);
    const typed = sampleOf({ ...free, method: 'POST', path: '/a b?c=d%20e&f', body: '{"half' });
    const second = await received(kind, json, null, typed);
    expect(second).toMatchObject({ method: 'POST', url: '/a b?c=d e&f', body: '{"half' });
    // A long number keeps its digits.
    const sent = (body: string): Sample => sampleOf({ ...free, method: 'POST', headers: form.headers, body });
    const long = '{"id": 12345678901234567890}';
    expect((await received(kind, json, null, sent(long))).body).toBe(long);
    for (const body of [long, '"text"', 'null']) expect(sent(body).body?.value).toBe(body);
  });

  it('say to an agent what was typed, too, and are short whatever was typed', () => {
    const free = formOf({ ...shown, operations: [] } as never, null);
    const form = { ...free, method: 'POST', path: '/x?tag=1&tag=2&n=3', body: 'a,b' };
    const headers = [{ name: 'Content-Type', value: 'text/csv' }];
    const options = { origin: market.baseUrl, service: shown, operation: null, key: null };
    const agent = snippetsOf({ ...options, typed: sampleOf({ ...form, headers }) }).at(-1)?.text ?? '';
    expect(JSON.parse(agent.slice(agent.indexOf('call_service {') + 'call_service '.length))).toMatchObject({
      query: { tag: ['1', '2'], n: '3' },
      body: 'a,b',
      content_type: 'text/csv',
    });
    const long = snippetsOf({ ...options, typed: sampleOf({ ...form, body: 'x'.repeat(1_000_000) }) });
    for (const { text } of long) expect(text.length).toBeLessThan(2_000);
  });

  it('of SDKs go on with the example while JSON is typed in half', () => {
    const chat = { ...priced, method: 'POST', path: '/v1/chat/completions', example: { body: { model: 'parrot' } } };
    const form = formOf({ ...shown, operations: [], proxy_path: '/' } as never, chat);
    const options = { origin: market.baseUrl, service: shown, operation: chat, key: null };
    const written = (body: string): string =>
      snippetsOf({ ...options, typed: sampleOf({ ...form, body }) }).find(({ kind }) => kind === 'openai')?.text ?? '';
    expect(written('{"model": "owl"}')).toContain('model: "owl"');
    expect(written('{"model": "ow')).toContain('model: "parrot"');
  });

  it('cost what they say, and contain the key only if its owner wants that', async () => {
    expect((await market.records(buyer)).every(({ amount, status }) => amount === 0.002 && status === 200)).toBe(true);
    for (const { text } of snippetsOf({ origin: market.baseUrl, service: shown, operation: json, key: null })) {
      expect(text).not.toContain(buyer.secret);
      expect(text).toMatch(/TOLLGATE_KEY|YOUR_KEY/);
    }
    const own = `${buyer.key_id}:${buyer.secret}`;
    for (const { text } of snippetsOf({ origin: market.baseUrl, service: shown, operation: json, key: own })) {
      // In a header, never in an address.
      expect(text.split(own)).toHaveLength(2);
      expect(text).toMatch(/Bearer acf_/);
    }
  });

  it('state the maximum cost of a call if the price depends on use', () => {
    const textsOf = (path: string, max?: number): string[] => {
      const operation = { ...plain, path, ...(max === undefined ? {} : { max_price: max }) };
      return snippetsOf({ origin: market.baseUrl, service: shown, operation, key: null }).map(({ text }) => text);
    };
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      const texts = textsOf(path, 0.000001);
      expect(texts).toHaveLength(5);
      for (const text of texts.slice(0, -1)) expect(text).toMatch(/X-ACF-Max-Amount['"]?: ['"]?0\.000001['"]/);
      expect(texts.at(-1)).toContain('"max_amount": 0.000001');
      expect(textsOf(path).join()).not.toContain('X-ACF-Max-Amount');
    }
    expect(textsOf('/x', 20)[0]).toContain("'X-ACF-Max-Amount: 20'");
  });

  it('say where to find the final amount if an amount is held', async () => {
    const inTrailer = await startService((request, response) => {
      response.writeHead(200, { trailer: 'X-ACF-Charge' }).write(request.method);
      response.addTrailers({ 'X-ACF-Charge': '0.003' });
      response.end();
    });
    const price = { price: 0.001, max_price: 0.05 };
    const id = (await market.service({ endpoint: inTrailer.url, ...price })).split('/').at(-1) ?? '';
    const key = await market.buyer(1);
    const options = { origin: market.baseUrl, service: { ...shown, id, ...price }, operation: null, key: null };
    for (const { kind, text } of snippetsOf(options).slice(0, KINDS.length)) {
      const output = await printed(kind, text, `${key.key_id}:${key.secret}`);
      expect(output, kind).toMatch(/(^200 |X-ACF-Amount: )0\.05$/m);
      // curl prints all headers, and a comment above it says what they mean.
      const [, usageId = ''] = output.match(/X-ACF-Usage-Id: (\S+)/) ?? [];
      const told = kind === 'curl' ? text.replace('{X-ACF-Usage-Id}', usageId) : output;
      const [, record = ''] = told.match(/record[^:]*: GET (\S+)/) ?? [];
      await market.settled();
      expect(await market.json(record, { key }), kind).toMatchObject({ amount: 0.003, authorized: 0.05 });
    }
    await inTrailer.close();
  });

  it('use the SDKs of OpenAI and Anthropic if the service supports them', async () => {
    const demo = serveDemo(0);
    await once(demo, 'listening');
    const { port } = demo.address() as AddressInfo;
    const id = (await market.service({ endpoint: `http://127.0.0.1:${port}/chat`, price: 0 })).split('/').at(-1) ?? '';
    const messages = [{ role: 'user', content: HOSTILE }];
    const operations = {
      openai: {
        ...priced,
        method: 'POST',
        path: '/v1/chat/completions',
        example: { body: { model: 'parrot', messages } },
      },
      anthropic: {
        ...priced,
        method: 'POST',
        path: '/v1/messages',
        example: { body: { model: 'parrot', max_tokens: 50, messages } },
      },
    };
    for (const kind of ['openai', 'anthropic'] as const) {
      const options = { origin: market.baseUrl, service: { ...shown, id }, operation: operations[kind], key: null };
      const text = snippetsOf(options).find((its) => its.kind === kind)?.text ?? '';
      const file = path.join(scratchDir(), `${kind}.mjs`);
      writeFileSync(
        file,
        text.replace(/from '(.+)'/, (_, name: string) => `from '${import.meta.resolve(name)}'`),
      );
      const env = { ...process.env, TOLLGATE_KEY: `${buyer.key_id}:${buyer.secret}` };
      expect((await run(process.execPath, [file], { env })).stdout).toContain('You said: it');
    }
    demo.close();
  });

  it('are an MCP configuration if the service is an MCP server, and always include a call as a tool of the gateway', async () => {
    const options = { origin: 'https://gate.example', key: null };
    const mcp = snippetsOf({ ...options, service: { ...shown, protocol: 'mcp' }, operation: null });
    expect(JSON.parse(mcp[0]?.text ?? '')).toEqual({
      mcpServers: {
        'it-s-quoted-home-id-file-41-b-a': {
          type: 'http',
          url: `https://gate.example/api/v1/proxy/${shown.id}`,
          headers: { Authorization: 'Bearer YOUR_KEY' },
        },
      },
    });
    const agent = snippetsOf({ ...options, service: shown, operation: json }).at(-1)?.text ?? '';
    expect(agent).toContain('"url": "https://gate.example/mcp"');
    const call = JSON.parse(agent.slice(agent.indexOf('call_service ') + 13)) as object;
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'call_service', arguments: call },
    };
    const answer = await market.request('/mcp', {
      key: buyer,
      method: 'POST',
      body,
      headers: { Accept: 'application/json, text/event-stream' },
    });
    const text = await answer.text();
    expect(text).toContain('\\"method\\":\\"PUT\\"');
    expect(text).not.toContain('"isError":true');
  });
});
