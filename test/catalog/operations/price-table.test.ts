import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Matcher } from '../../../src/catalog/operations/matcher.ts';
import { type HttpTerms, ownPriceOf } from '../../../src/catalog/operations/operation.ts';
import { PriceTable, ToolPrices } from '../../../src/catalog/operations/price-table.ts';
import { parseTemplate, type TemplateSegment } from '../../../src/catalog/operations/template.ts';
import { mostOf, priceOf } from '../../../src/catalog/price.ts';
import { PROXY_PREFIX } from '../../../src/gate/caller-io.ts';
import { parseTarget } from '../../../src/proxy/target.ts';

const segmentsOf = (path: string): readonly TemplateSegment[] => {
  const parsed = parseTemplate(path);
  if ('fault' in parsed) throw new Error(`${path}: ${parsed.fault}`);
  return parsed.segments;
};

const LISTING = { priceMicros: 100, maxPriceMicros: null, onlyOperations: true };
const CHEAP = 1;
const DEAR = 5_000;

describe('the matching template', () => {
  const matcher = new Matcher<string>();
  const templates = [
    '/',
    '/users',
    '/users/',
    '/users/me',
    '/users/{id}',
    '/{a}/b/{c}',
    '/users/{id}/files/*',
    '/{a}/*',
  ];
  for (const path of templates) matcher.add(segmentsOf(path), path);

  const cases: [string, string | null][] = [
    ['', '/'],
    ['/', '/'],
    ['/users', '/users'],
    ['/users/', '/users/'],
    ['/users/me', '/users/me'],
    ['/users/you', '/users/{id}'],
    ['/Users', null],
    ['/users/5/files/', '/users/{id}/files/*'],
    ['/users/5/files/a/b', '/users/{id}/files/*'],
    ['/users/5/files', '/{a}/*'],
    ['/x/b/y', '/{a}/b/{c}'],
    ['/users/b/y', '/{a}/b/{c}'],
    ['/x/', '/{a}/*'],
    ['//b/y', null],
    ['/a%2Fb', null],
    ['/a;v=1', null],
  ];
  it.each(cases)('of %s is %s', (path, expected) => expect(matcher.find(path)).toBe(expected));

  it('is found in time that does not grow with the path, whatever the path is', () => {
    const many = new Matcher<number>();
    for (let n = 0; n < 30; n++) many.add(segmentsOf(`/${'{a}/'.replace('a', 'x').repeat(1)}${'a/'.repeat(n)}end`), n);
    expect(many.find(`/${'a/'.repeat(8_000)}`)).toBeNull();
  });
});

describe('the price of a call', () => {
  const table = new PriceTable(
    [
      ['GET', '/report', DEAR, null],
      ['GET', '/{name}', CHEAP, null],
      ['POST', '/report', 0, null],
      ['GET', '/v1/*', CHEAP, null],
      ['GET', '/v1/report/{id}', DEAR, null],
      ['GET', '/v1.1/{id}', DEAR, null],
    ],
    LISTING,
  );
  const priceOf = (method: string, path: string): unknown => {
    const priced = table.priceOf(method, path);
    return 'priceMicros' in priced ? priced.priceMicros : priced.refused;
  };

  it('is the price of the operation, and HEAD counts as GET', () => {
    expect(priceOf('GET', '/report')).toBe(DEAR);
    expect(priceOf('HEAD', '/report')).toBe(DEAR);
    expect(priceOf('POST', '/report')).toBe(0);
    expect(priceOf('GET', '/status')).toBe(CHEAP);
    expect(priceOf('GET', '/v1/report')).toBe(CHEAP);
    expect(priceOf('GET', '/v1/reports/5')).toBe(CHEAP);
    expect(priceOf('GET', '/v1/report/5')).toBe(DEAR);
  });

  it('does not exist for calls that match no operation, if the listing allows operations only', () => {
    expect(priceOf('DELETE', '/report')).toBe('no_operation');
    expect(priceOf('GET', '/a/b')).toBe('no_operation');
    const open = new PriceTable([['GET', '/a', CHEAP, null]], { ...LISTING, onlyOperations: false });
    expect(open.priceOf('GET', '/b')).toEqual({ priceMicros: 100, maxPriceMicros: null });
    expect(open.priceOf('GET', '/A')).toEqual({ priceMicros: 100, maxPriceMicros: null });
  });

  const tricks = [
    '/Report',
    '/REPORT',
    '/%72eport',
    '/repor%74',
    '/report.json',
    '/report.',
    '/report%20',
    '/ｒｅｐｏｒｔ',
    '/%EF%BD%92eport',
    '/%E2%93%A1eport',
    // What follows `?` or `#` is cut off by servers that decode first. Rails takes anything behind a dot for a format, Spring did.
    '/report%3Fx',
    '/report%23x',
    '/report.1',
    '/report.J-S',
    '/report.tar.gz',
    '/report.aaaaaaaaaaaaaa',
  ];
  it.each(tricks)('is never the low price for %s', (path) => expect(priceOf('GET', path)).toBe('ambiguous'));

  const splits = [
    '/report/',
    '//report',
    '/report;x=1',
    '/report%3Bx',
    '/%2Freport',
    '/report%09',
    '/%5Creport',
    '/report%00',
    '/%2572eport',
    '/%EF%BC%8Freport',
    '/report%EF%BC%8F',
    '/report%EF%BC%9Bx',
    '/%EF%BC%8E%EF%BC%8E',
  ];
  it.each(splits)('is never the low price for %s, which no {name} matches', (path) => {
    expect(priceOf('GET', path)).toBe('no_operation');
  });

  const behindStar = [
    '/v1//report/5',
    '/v1/report//5',
    '/v1/REPORT/5',
    '/v1/report/5/',
    '/v1/report;a/5',
    '/v1/report%2F5',
    '/v1/%72eport/5',
    '/v1/%2572eport/5',
    '/v1/report\\\\5',
    '/v1/report/%FF',
    '/v1/report/',
    '/v1/%252e%252e/report',
    '/v1/x/%25252e./report',
    '/v1/%EF%BC%8E%EF%BC%8E/report',
    '/v1/report%EF%BC%8F5',
    '/v1/report/5%3F/6',
    '/v1/report/5%23/6',
  ];
  it.each(behindStar)('is never the low price for %s, which * matches', (path) => {
    expect(priceOf('GET', path)).toBe('ambiguous');
  });

  it('is that of the matched operation if no server could read the call as a more expensive one', () => {
    const paths: [string, number][] = [
      ['/repos/{owner}/{repo}/issues/{issue}', DEAR],
      ['/repos/{owner}/{repo}/issues/comments', CHEAP],
      ['/repos/{owner}/{repo}/issues/comments/{comment}', CHEAP],
      ['/repos/{owner}/{repo}/issues/{issue}/timeline', CHEAP],
      ['/repos/{owner}/{repo}/{archive}/{ref}', DEAR],
      ['/repos/{owner}/{repo}/zipball/{ref}', CHEAP],
      ['/repos/{owner}/{repo}', CHEAP],
      ['/v1/customers/{customer}', CHEAP],
      ['/v1/customers/{customer}/{part}', DEAR],
      ['/v1/customers/{customer}/{part}/{id}', DEAR],
      ['/v1/customers/{customer}/cards', CHEAP],
      ['/v1/customers/{customer}/cards/{id}', CHEAP],
      ['/search/{words}', CHEAP],
      ['/search/{words}/{language}', DEAR],
      ['/tags/{tag}', CHEAP],
      ['/people/{id}/', CHEAP],
      ['/people/{id}/{part}/', DEAR],
      ['/files/{id}/content/', CHEAP],
      ['/files/{id}/{part}/', DEAR],
      ['/raw/*', CHEAP],
    ];
    const terms = paths.map(([path, price]): HttpTerms => ['GET', path, price, null]);
    const calls = [
      '/repos/octo/cat/issues/comments',
      '/repos/octo/cat/issues/comments/7',
      '/repos/octo/cat/issues/7/timeline',
      '/repos/octo/cat/zipball/main',
      '/repos/octo/cat.js',
      '/repos/Zo%C3%AB/my%20cat',
      '/v1/customers/cus_9/cards',
      '/v1/customers/cus_9/cards/card_1',
      '/v1/customers/a%40b.example',
      '/search/hello%20world',
      '/search/%E6%9D%B1%E4%BA%AC',
      '/search/what%3F',
      '/tags/c%23',
      '/people/5/',
      '/people/Zo%C3%AB/',
      '/files/5/content/',
      '/raw/a/b.txt',
      '/raw/a%20b/c',
    ];
    for (const onlyOperations of [true, false]) {
      const listing = { ...LISTING, priceMicros: DEAR, onlyOperations };
      const many = new PriceTable(terms, listing);
      for (const path of calls) expect(many.priceOf('GET', path), path).toMatchObject({ priceMicros: CHEAP });
    }
  });

  it('also compares the middle of an expensive path that begins with a dot', () => {
    const dotted = new PriceTable(
      [
        ['GET', '/x/*', CHEAP, null],
        ['GET', '/x/.well/y', DEAR, null],
      ],
      LISTING,
    );
    expect(dotted.priceOf('GET', '/x/.WELL/y')).toMatchObject({ refused: 'ambiguous' });
  });

  it('is found in milliseconds, whatever the path is and whatever the provider listed', () => {
    const names = (n: number): string => Array.from({ length: n }, (_, i) => `/{n${i}}`).join('');
    const slow = new PriceTable(
      [
        ['GET', '/v1/*', CHEAP, null],
        ...Array.from({ length: 199 }, (_, i): HttpTerms => ['GET', `${names(30)}/z${i}`, DEAR, null]),
      ],
      LISTING,
    );
    const paths = [`/v1//${'a/'.repeat(7_000)}b`, `/v1//${'a/'.repeat(60)}b`, `/v1/a${'.'.repeat(14_000)}a`];
    for (const path of paths) {
      slow.priceOf('GET', path);
      const begin = process.cpuUsage();
      slow.priceOf('GET', path);
      expect(process.cpuUsage(begin).user, path.slice(0, 20)).toBeLessThan(100_000);
    }
  });

  it('is that of the first operation in matching order, even if a more expensive one also matches', () => {
    const beside = (path: string, cheap: string, dear: string, onlyOperations: boolean): unknown => {
      const terms: HttpTerms[] = [
        ['GET', cheap, CHEAP, null],
        ['GET', dear, 4, null],
      ];
      return new PriceTable(terms, { ...LISTING, onlyOperations }).priceOf('GET', path);
    };
    for (const only of [true, false]) {
      for (const [path, cheap, dear] of [
        ['/users/1', '/users/{id}', '/users/*'],
        ['/users/1', '/users/{id}', '/*'],
        ['/v1/foo/generate', '/v1/{model}/generate', '/*'],
        ['/users/1/x', '/users/{id}/x', '/users/{id}/*'],
        ['/a/b', '/a/{x}', '/{y}/b'],
        ['/users/a@b.example', '/users/{id}', '/users/*'],
      ] as const) {
        expect(beside(path, cheap, dear, only), `${path} of ${cheap} beside ${dear}`).toMatchObject({
          priceMicros: CHEAP,
        });
      }
    }
  });

  it('of /* applies to every path, including the empty path', () => {
    const table = new PriceTable([['GET', '/*', CHEAP, null]], { ...LISTING, onlyOperations: false });
    for (const path of ['', '/', '/a', '/;x', '/a//', '/%ff'])
      expect(table.priceOf('GET', path)).toMatchObject({ priceMicros: CHEAP });
  });

  it('of a tool is found only by the exact name of the tool', () => {
    const tools = new ToolPrices(
      [
        ['search', CHEAP, null],
        ['render', DEAR, null],
        ['list', null, null],
      ],
      LISTING,
    );
    expect(tools.priceOf('search')).toEqual({ priceMicros: CHEAP, maxPriceMicros: null });
    expect(tools.priceOf('list')).toEqual({ priceMicros: 100, maxPriceMicros: null });
    expect(tools.priceOf('Search')).toEqual({ refused: 'no_operation' });
    expect(tools.priceOf('__proto__')).toEqual({ refused: 'no_operation' });
  });
});

/** What servers do to a path before they look for its route. Each is done by some server; a server does any of them, in any order. */
const READINGS: readonly ((path: string) => string)[] = [
  (path) => decode(path),
  (path) => path.toLowerCase(),
  (path) => path.replace(/\/{2,}/g, '/'),
  (path) => (path.length > 1 ? path.replace(/\/+$/, '') : path),
  (path) => path.replace(/;[^/]*/g, ''),
  (path) => path.replaceAll('\\', '/'),
  (path) => path.replace(/\0.*$/s, ''),
  (path) => path.replace(/[\s.]+(?=\/|$)/g, ''),
  (path) => path.replace(/\.(json|xml|html)$/, ''),
  (path) => path.replace(/(?<=[^/])\.[^./]+$/, ''),
  (path) => path.replace(/[?#].*$/s, ''),
  (path) => withoutDotSegments(path),
  (path) => path.normalize('NFKC'),
];

function withoutDotSegments(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..' && kept.length > 1) kept.pop();
    else if (segment !== '.' && segment !== '..') kept.push(segment);
  }
  return kept.join('/');
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The same path, spelled in another way that one of the readings undoes. */
const SPELLINGS: readonly ((character: string) => string)[] = [
  (c) => c,
  (c) => c,
  (c) => c.toUpperCase(),
  (c) => encode(c),
  (c) => encode(encode(c)),
  (c) => (c === '/' ? '//' : c),
  (c) => (c === '/' ? ';x=1/' : c),
  (c) => (c === '/' ? '\\' : c),
  (c) => (/[!-~]/.test(c) ? String.fromCodePoint((c.codePointAt(0) as number) + 0xfee0) : c),
];
const encode = (text: string): string =>
  [...text].map((c) => (/[!-~]/.test(c) ? `%${c.charCodeAt(0).toString(16).toUpperCase()}` : c)).join('');
const ENDINGS = ['', '', '/', '.json', ';a=b', '%00', '%20', '.', '//', '%2F', '%3Fx', '%23', '.1'];

const segment = fc.constantFrom('a', 'b', 'report', '{x}', '{y}');
const template = fc
  .tuple(fc.uniqueArray(segment, { minLength: 1, maxLength: 4 }), fc.boolean())
  .map(([segments, rest]) => `/${segments.join('/')}${rest ? '/*' : ''}`);
const price = fc.constantFrom(0, CHEAP, 20, 100, DEAR);

describe('a price by use', () => {
  const listing = { priceMicros: 100, maxPriceMicros: 500, onlyOperations: true };
  const table = new PriceTable(
    [
      ['GET', '/same', null, null],
      ['GET', '/models', 0, null],
      ['GET', '/fixed', 50, null],
      ['GET', '/long', null, 9_000],
      ['GET', '/{name}', 100, null],
      ['GET', '/{name}/{part}', 20, 200],
    ],
    listing,
  );

  it.each([
    ['/same', 100, 500],
    ['/models', 0, null],
    ['/fixed', 50, null],
    ['/long', 100, 9_000],
    ['/any', 100, null],
    ['/a/b', 20, 200],
  ])('of %s is that of the listing only where the operation states none', (path, priceMicros, maxPriceMicros) => {
    expect(table.priceOf('GET', path)).toMatchObject({ priceMicros, maxPriceMicros });
  });

  it('is not available through a fixed-price operation that costs as much without a report', () => {
    expect(table.priceOf('GET', '/LONG')).toMatchObject({ refused: 'ambiguous', spelling: '/long' });
    expect(table.priceOf('GET', '/%73ame')).toMatchObject({ refused: 'ambiguous', spelling: '/same' });
    expect(table.priceOf('GET', '/FIXED')).toMatchObject({ priceMicros: 100 });
  });
});

describe('any spelling of a path', () => {
  it('has at least the price of the expensive operation that some server takes the path for', () => {
    const operations = fc.uniqueArray(fc.tuple(template, price, fc.option(fc.constantFrom(0, 10, 1_000))), {
      minLength: 2,
      maxLength: 6,
      selector: ([path]) => path.replaceAll('{y}', '{x}'),
    });
    const filler = fc.constantFrom('a', 'b', '5', 'Zoë', 'report', '%20', ';', '', '%252e%252e', 'a%3F');
    const spelled = fc.record({
      fillers: fc.array(filler, { minLength: 6, maxLength: 6 }),
      spellings: fc.array(fc.nat(SPELLINGS.length - 1), { minLength: 40, maxLength: 40 }),
      sparse: fc.nat(6),
      ending: fc.constantFrom(...ENDINGS),
    });
    const readings = fc.array(fc.nat(READINGS.length - 1), { maxLength: 8 });
    const property = fc.property(
      operations,
      fc.nat(5),
      spelled,
      readings,
      fc.boolean(),
      (given, which, how, done, only) => {
        const terms = given.map(
          ([path, micros, more]): HttpTerms => ['GET', path, micros, more === null ? null : micros + more],
        );
        const listing = { priceMicros: DEAR, maxPriceMicros: DEAR + 1_000, onlyOperations: only };
        const table = new PriceTable(terms, listing);
        const exact = new Matcher<HttpTerms>();
        for (const term of terms) exact.add(segmentsOf(term[1]), term);
        const target = terms[which % terms.length] as HttpTerms;
        const plain = fill(target[1], how.fillers);
        const sent = spell(plain, how.spellings, how.sparse) + how.ending;
        const priced = table.priceOf('GET', sent);
        if (!('priceMicros' in priced) || hasDotSegments(sent)) return;
        const seen = done.reduce((path, reading) => (READINGS[reading] as (p: string) => string)(path), sent);
        const served = exact.find(seen);
        // A path in the very spelling of a literal template has its price, even if some server mixes it up with another.
        if (terms.some(([, path]) => path === sent)) return;
        if (served === null) return;
        const due = priceOf(ownPriceOf(served), listing);
        expect(priced.priceMicros, `${sent} read as ${seen}`).toBeGreaterThanOrEqual(due.priceMicros);
        expect(mostOf(priced), `${sent} read as ${seen}`).toBeGreaterThanOrEqual(mostOf(due));
      },
    );
    fc.assert(property, { numRuns: 3_000 });
  });
});

/** Such paths are refused before they are priced. */
function hasDotSegments(path: string): boolean {
  try {
    parseTarget(`${PROXY_PREFIX}00000000-0000-7000-8000-000000000001${path}`);
    return false;
  } catch {
    return true;
  }
}

const fill = (path: string, fillers: readonly string[]): string =>
  path
    .split('/')
    .map((text, index) => (text.startsWith('{') || text === '*' ? (fillers[index] as string) : text))
    .join('/');

const spell = (path: string, spellings: readonly number[], sparse: number): string =>
  [...path]
    .map((c, index) => {
      if (index === 0 || index % (sparse + 1) !== 0) return c;
      return (SPELLINGS[spellings[index % spellings.length] as number] as (c: string) => string)(c);
    })
    .join('');
