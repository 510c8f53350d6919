import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../src/errors.ts';
import { type Message, readMessage } from '../../../src/proxy/mcp/message.ts';
import { refuseEncodedBody } from '../../../src/proxy/mcp/message-headers.ts';
import { PricedTools } from '../../../src/proxy/mcp/priced-tools.ts';
import { makeListing } from '../../support/listings.ts';

const TYPE = ['content-type', 'application/json'];

function read(text: string, headers: readonly string[] = TYPE): Message {
  refuseEncodedBody(headers);
  return readMessage(headers, Buffer.from(text));
}

function refusalOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof ApiError) return `${error.code}: ${error.message}`;
    throw error;
  }
  throw new Error('was not refused');
}

const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cheap","arguments":{}}}';
/** 99 members of an object. */
const MANY = Array.from({ length: 99 }, (_, i) => `"${i}":1,`).join('');
const call = (members: string): string => `{"jsonrpc":"2.0","id":1,${members}}`;

describe('a message that calls a tool', () => {
  it.each([
    ['as clients write it', CALL],
    ['with escapes', CALL.replace('tools/call', 't\\u006fols\\/call').replace('cheap', '\\u0063heap')],
    [
      'with escapes in the names of members',
      CALL.replace('"method"', '"\\u006dethod"').replace('"name"', '"n\\u0061me"'),
    ],
    ['with white space', CALL.replaceAll(':', ' :\n\t').replaceAll(',', ' , ')],
    ['without an id', CALL.replace('"id":1,', '')],
    ['with another call in its arguments', CALL.replace('{}', '{"method":"ping","params":{"name":"dear"}}')],
    ['with a prototype', CALL.replace('"name"', '"__proto__":{"name":"dear"},"name"')],
  ])('is found %s', (_how, text) => {
    const { tool, body } = read(text);
    expect(tool).toBe('cheap');
    expect(JSON.parse(body.toString())).toEqual(JSON.parse(text));
  });

  it('uses the last of several members with the same name, and the service gets no other', () => {
    const twice = call('"method":"ping","params":{"name":"dear","name":"cheap"},"m\\u0065thod":"tools/call"');
    const { tool, body } = read(twice);
    expect(tool).toBe('cheap');
    expect(body.toString()).toBe('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cheap"}}');
    expect(read(call('"method":"tools/call","method":"ping"')).body.toString()).toBe(call('"method":"ping"'));
  });

  it.each([
    ['without a tool', CALL.replace('"name":"cheap",', '')],
    ['with a tool that is not text', CALL.replace('"cheap"', '["dear"]')],
    ['with a tool by prototype only', CALL.replace('"name":"cheap"', '"__proto__":{"name":"cheap"}')],
    ['with a list of parameters', call('"method":"tools/call","params":["cheap"]')],
    ['without parameters', call('"method":"tools/call"')],
    ['with more parameters than any call has', CALL.replace('"arguments"', `${MANY}"arguments"`)],
    ...['Name', 'NAME', 'na_me', 'ｎame', 'name\\u0000', ' name', 'na\\ud800me'].map((name): [string, string] => [
      `with a second ${name}`,
      CALL.replace('"arguments"', `"${name}":"dear","arguments"`),
    ]),
  ])('is refused %s', (_how, text) => {
    expect(refusalOf(() => read(text))).toMatch(/^invalid_request: params/);
  });
});

describe('a message that calls no tool', () => {
  it.each([
    ['a request', call('"method":"tools/list"')],
    ['a request with a name', call('"method":"prompts/get","params":{"name":"cheap"}')],
    ['a notification', '{"jsonrpc":"2.0","method":"notifications/initialized"}'],
    ['a response', '{"jsonrpc":"2.0","id":1,"result":{"method":"tools/call"}}'],
    ['an error', '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}'],
    ['a method of tasks', call('"method":"tasks/result","params":{"taskId":"1"}')],
  ])('costs nothing: %s', (_what, text) => {
    const { method = null } = JSON.parse(text);
    expect(read(text)).toEqual({ tool: null, method, body: Buffer.from(text) });
  });

  it.each([
    ...[
      'Tools/call',
      'tools/Call',
      'tools\\\\call',
      'tools//call',
      ' tools/call',
      'tools/call\\u0000',
      'tools.call',
      'toolſ/call',
    ].map((method): [string, string] => [`the method "${method}"`, call(`"method":"${method}"`)]),
    ...['Method', 'METHOD', 'method ', 'ｍethod', 'params_', 'Paramſ', '__proto__', 'constructor', 'meta'].map(
      (name): [string, string] => [`a member "${name}"`, call(`"method":"ping","${name}":"tools/call"`)],
    ),
    ['a method that is not text', call('"method":["tools/call"]')],
    ['a method and a result', call('"method":"ping","result":{}')],
    ['neither method nor result', call('"params":{"name":"dear"}')],
    ['a response with parameters', call('"result":{},"params":{"name":"dear"}')],
    ['a method that is too long', call(`"method":"tools/call${' '.repeat(91)}"`)],
    ['another version of JSON-RPC', '{"jsonrpc":"1.0","id":1,"method":"ping"}'],
    ['no version of JSON-RPC', '{"id":1,"method":"ping"}'],
    ['a batch', `[${CALL}]`],
    ['an empty batch', '[]'],
    ['a text', '"tools/call"'],
    ['null', 'null'],
  ])('is refused when a server might read it as a call: %s', (_what, text) => {
    expect(refusalOf(() => read(text))).toMatch(/^invalid_request: /);
  });
});

it('a message is judged in milliseconds, whatever its names consist of', () => {
  // Marks in an order that normalisation has to turn round: 160 KB of them take it 3 s, a megabyte two minutes.
  const marks = (count: number): string => `a${'\u0345'.repeat(count)}${'\u0334'.repeat(count)}`;
  const messages = [
    call(`"method":"${marks(40_000)}"`),
    CALL.replace('"arguments"', `"${marks(40_000)}"`),
    call(`"method":"ping","${marks(40_000)}":1`),
  ];
  for (const message of messages) {
    const before = process.cpuUsage();
    try {
      read(message);
    } catch (error) {
      expect(error).toBeInstanceOf(ApiError);
    }
    expect(process.cpuUsage(before).user).toBeLessThan(500_000);
  }
});

describe('headers of a message', () => {
  const other = (name: string, value: string) => [...TYPE, name, value];

  it.each([['application/json; charset=utf-8'], ['application/json;charset="UTF-8"'], ['Application/JSON']])(
    'may name its type: %s',
    (type) => {
      expect(read(CALL, ['content-type', type]).tool).toBe('cheap');
    },
  );

  it.each([
    ['no type', []],
    ['another type', ['content-type', 'text/plain']],
    ['a charset that changes the text', ['content-type', 'application/json; charset=utf-7']],
    ['two types', [...TYPE, ...TYPE]],
    ['a second type for CGI', [...TYPE, 'content_type', 'application/x-www-form-urlencoded']],
    ['a content coding', other('content-encoding', 'gzip')],
    ['a content coding for CGI', other('content_encoding', 'br')],
    ['another method', other('mcp-method', 'ping')],
    ['another method for CGI', other('mcp_method', 'ping')],
    ['a second, other method', [...other('mcp-method', 'tools/call'), 'mcp-method', 'ping']],
    ['another tool', other('mcp-name', 'dear')],
    ['another tool in base64', other('mcp-name', `=?base64?${btoa('dear')}?=`)],
    ['base64 that is not canonical', other('mcp-name', '=?base64?Y2hlYXA?=')],
    ['base64 that is not UTF-8', other('mcp-name', '=?base64?/w==?=')],
  ])('are refused with %s', (_what, headers) => {
    expect(refusalOf(() => read(CALL, headers))).toMatch(/^invalid_request: /);
  });

  it.each([
    ['the method and the tool', [...other('mcp-method', 'tools/call'), 'mcp-name', 'cheap']],
    ['the tool in base64', other('mcp-name', `=?base64?${btoa('cheap')}?=`)],
    ['a parameter of the tool', other('mcp-param-city', 'Paris')],
  ])('pass when they repeat %s', (_what, headers) => {
    expect(read(CALL, headers).tool).toBe('cheap');
  });

  it('may not name a method if the message is a response: a server that trusts them would call a tool for free', () => {
    for (const response of [call('"result":{}'), call('"error":{"code":-1,"message":"no"}')]) {
      expect(read(response).tool).toBeNull();
      const headers = [...other('mcp-method', 'tools/call'), 'mcp-name', 'dear'];
      expect(refusalOf(() => read(response, headers))).toContain('mcp-method');
    }
  });

  it('must repeat the name of the resource, prompt or task in the message', () => {
    const message = call('"method":"resources/read","params":{"uri":"file:///a"}');
    expect(read(message, other('mcp-name', 'file:///a')).tool).toBeNull();
    expect(refusalOf(() => read(message, other('mcp-name', 'cheap')))).toContain('mcp-name');
    expect(refusalOf(() => read(call('"method":"ping"'), other('mcp-method', 'tools/call')))).toContain('mcp-method');
    expect(refusalOf(() => read(call('"method":"tasks/get","params":null'), other('mcp-name', '1')))).toContain(
      'mcp-name',
    );
  });
});

describe('prices of tools', () => {
  const terms = JSON.stringify([
    ['cheap', 10, null],
    ['dear', 9_000, null],
    ['plain', null, null],
    ['gift', 0, null],
  ]);
  const tools = new PricedTools(
    makeListing({ protocol: 'mcp', priceMicros: 500, freeCalls: 3, onlyOperations: true, operationTerms: terms }),
  );
  const open = new PricedTools(makeListing({ protocol: 'mcp', priceMicros: 500, freeCalls: 3, operationTerms: null }));
  const freeCallsOf = (args: string): string => args.split('\r\n')[3] as string;

  it('are those of the listing, unless a tool has its own price', () => {
    expect(['cheap', 'dear', 'plain', 'gift'].map((tool) => tools.termsOf(tool).priceMicros)).toEqual([
      10, 9_000, 500, 0,
    ]);
    expect(open.termsOf('anything').priceMicros).toBe(500);
  });

  it('are zero for every message that calls no tool, and such a message uses no free call', () => {
    expect([tools.termsOf(null).priceMicros, freeCallsOf(tools.termsOf(null).args)]).toEqual([0, '0']);
    expect([freeCallsOf(tools.termsOf('cheap').args), freeCallsOf(tools.termsOf('dear').args)]).toEqual(['3', '0']);
  });

  it('do not exist for an unlisted tool if only listed tools may be called', () => {
    for (const tool of ['Dear', 'dear ', 'other', '', '__proto__', 'constructor']) {
      expect(refusalOf(() => tools.termsOf(tool))).toMatch(/^operation_not_found: /);
    }
  });

  /**
   * How a lax server might find the tool in what it gets: names in any case, in compatibility form, and without what is no letter.
   */
  function laxTools(text: string): Set<string> {
    const found = new Set<string>();
    const loose = (value: unknown): string =>
      String(value)
        .normalize('NFKC')
        .toLowerCase()
        .replace(/[^a-z]/g, '');
    const message = JSON.parse(text) as object;
    const members = Object.entries(message);
    const isCall = members.some(([name, value]) => loose(name) === 'method' && loose(value) === 'toolscall');
    if (!isCall) return found;
    for (const [name, params] of members) {
      if (loose(name) !== 'params' || typeof params !== 'object' || params === null) continue;
      for (const [key, value] of Object.entries(params)) if (loose(key) === 'name') found.add(String(value));
    }
    return found;
  }

  it('cannot be lowered by any spelling of a message: a server finds the tool that was paid for, and no other', () => {
    type Member = readonly [name: string, value: string];
    const written = (members: readonly Member[]): string =>
      members.map(([name, value]) => `"${name}":${value}`).join(',');
    const spelled = (name: string) =>
      fc.constantFrom(
        name,
        `\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}`,
        name.toUpperCase(),
        `${name[0]}\\ud800${name.slice(1)}`,
      );
    const tool = fc.constantFrom('"cheap"', '"dear"', '"d\\u0065ar"', '"gift"');
    const otherTool = fc.oneof(tool, fc.constantFrom('"DEAR"', '["dear"]', 'null', '{"name":"dear"}'));
    const method = fc.constantFrom('"tools/call"', '"tools\\/call"');
    const otherMethod = fc.constantFrom(
      '"ping"',
      '"tools/list"',
      '"Tools/Call"',
      '["tools/call"]',
      '"tool\\u017f/call"',
    );
    /** What is right, and up to two members more, in any order. */
    const mixed = (right: fc.Arbitrary<Member>[], more: fc.Arbitrary<Member>) =>
      fc
        .tuple(fc.tuple(...right), fc.array(more, { maxLength: 2 }))
        .chain(([some, others]) =>
          fc.shuffledSubarray([...some, ...others], { minLength: some.length + others.length }),
        );
    const params = mixed(
      [fc.tuple(fc.constant('name'), tool)],
      fc.tuple(fc.oneof(spelled('name'), fc.constantFrom('arguments', '__proto__')), otherTool),
    ).map((members) => `{${written(members)}}`);
    const message = mixed(
      [fc.tuple(fc.constant('method'), fc.oneof(method, otherMethod)), fc.tuple(fc.constant('params'), params)],
      fc.oneof(
        fc.tuple(spelled('method'), fc.oneof(method, otherMethod)),
        fc.tuple(spelled('params'), params),
        fc.tuple(fc.constantFrom('id', 'result', '__proto__'), fc.constant('1')),
      ),
    );
    let priced = 0;
    let paid = 0;
    fc.assert(
      fc.property(message, (members) => {
        const text = `{"jsonrpc":"2.0",${written(members)}}`;
        let price: number;
        let body: string;
        try {
          const message = read(text);
          price = tools.termsOf(message.tool).priceMicros;
          body = message.body.toString();
        } catch (error) {
          expect(error).toBeInstanceOf(ApiError);
          return;
        }
        priced++;
        if (price > 0) paid++;
        // No name occurs twice: whether a server takes the first or the last makes no difference.
        expect(JSON.stringify(JSON.parse(body))).toBe(body);
        const served = [...laxTools(body)];
        expect(served.length).toBeLessThanOrEqual(1);
        for (const name of served) expect(tools.termsOf(name).priceMicros).toBe(price);
        if (served.length === 0) expect(price).toBe(0);
      }),
      { numRuns: 3_000 },
    );
    // The property is empty if everything is refused.

    expect(priced).toBeGreaterThan(100);
    expect(paid).toBeGreaterThan(10);
  });
});
