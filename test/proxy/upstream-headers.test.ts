import { describe, expect, it } from 'vitest';
import { newKeyId, newSecret } from '../../src/keys/credentials.ts';
import { hasUpstreamHeaders, UpstreamHeaders } from '../../src/proxy/upstream-headers.ts';
import { Sealer } from '../../src/secrets/sealer.ts';
import { ServiceSecrets } from '../../src/secrets/service-secrets.ts';
import { makeListing } from '../support/listings.ts';

const secrets = new ServiceSecrets(new Sealer([Buffer.alloc(32, 'test key')]));
const { id, endpoint } = makeListing();
const request = { method: 'GET', path: '/', usageId: 'usage-1', buyer: 'buyer-1' };

type Of = { readonly added?: Record<string, string>; readonly asked?: readonly string[]; readonly signed?: boolean };
const listingOf = ({ added, asked, signed }: Of) =>
  makeListing({
    id,
    upstreamHeaders: added === undefined ? null : secrets.seal('header', { id, endpoint }, Object.entries(added)),
    forwardHeaders: asked?.join() ?? null,
    signingKeys: signed ? secrets.newSigningKey(id, null, 0).stored : null,
  });

/** The lines that reach the service, except those of every call. */
function toService(of: Of, ...headers: string[]): string[] {
  const isAscii = /^[\0-\x7f]*$/.test(headers.join(''));
  const head = { headers, isAscii };
  const listing = listingOf(of);
  const lines = new UpstreamHeaders(listing, 'service.example', secrets.open(listing)).lines(head, request, 0);
  expect(lines).toContain('via: 1.1 tollgate\r\nx-acf-usage-id: usage-1\r\nx-acf-buyer: buyer-1\r\n');
  return lines
    .split('\r\n')
    .slice(0, -1)
    .filter((line) => !/^(via|x-acf-usage-id|x-acf-buyer): /.test(line));
}

describe('headers that a listing adds', () => {
  const added = { authorization: 'Bearer sk-provider', 'x-tenant': 'a b', x_old: 'c' };

  it("replace the caller's headers of the same name, whatever their number and kind of dashes", () => {
    const caller = [
      'x-tenant',
      '1',
      'x_tenant',
      '2',
      'x-tenant',
      '3',
      'x-old',
      '4',
      'authorization',
      '5',
      'accept',
      '*/*',
    ];
    expect(toService({ added }, ...caller)).toEqual([
      'accept: */*',
      'authorization: Bearer sk-provider',
      'x-tenant: a b',
      'x_old: c',
    ]);
  });

  it('cannot be removed by naming them in Connection, which still removes the other headers that it names', () => {
    expect(toService({ added: { 'x-tenant': 'a' } }, 'connection', 'x-tenant, x-hop', 'x-hop', '1')).toEqual([
      'x-tenant: a',
    ]);
  });

  it('prevent every call if one of them cannot be read', () => {
    const listing = listingOf({ added });
    const other = { ...listing, id: makeListing().id };
    const moved = new UpstreamHeaders(other, 'service.example', secrets.open(other));
    expect(moved.unreadable).toEqual(['authorization', 'x-tenant', 'x_old']);
    expect(() => moved.lines({ headers: [], isAscii: true }, request, 0)).toThrow('no call is sent');
  });
});

describe('a credential header of the caller', () => {
  const asked = ['x-api-key', 'authorization'];

  it('reaches the service only if the service asks for it and this request agrees', () => {
    const sent = ['x-api-key', 'sk-a', 'authorization', 'Bearer sk-b', 'cookie', 'c'];
    const forwarded = (agreed: string, of: Of = { asked }): string[] => toService(of, 'x-acf-forward', agreed, ...sent);
    expect(toService({ asked }, ...sent)).toEqual([]);
    expect(forwarded('x-api-key')).toEqual(['x-api-key: sk-a']);
    expect(forwarded(' Authorization ,X-API-KEY, cookie')).toEqual(['x-api-key: sk-a', 'authorization: Bearer sk-b']);
    expect(forwarded('cookie, x-api-keys, *')).toEqual([]);
    expect(forwarded('x-api-key', { asked: ['authorization'] })).toEqual([]);
    expect(forwarded('x-api-key', { added: { 'x-other': '1' } })).toEqual(['x-other: 1']);
  });

  it('does not reach the service with a key of the gateway in it, in another spelling, or if Connection names it', () => {
    const agreed = ['x-acf-forward', 'x-api-key,authorization'];
    const ours = `${newKeyId()}:${newSecret()}`;
    for (const value of [ours, `Bearer ${ours}`, `a ${ours} b`]) {
      expect(toService({ asked }, ...agreed, 'x-api-key', value, 'authorization', value)).toEqual([]);
    }
    // As `curl -u` writes it.
    const basic = (pair: string): string => Buffer.from(pair).toString('base64');
    for (const scheme of ['Basic ', 'basic  ', '']) {
      expect(toService({ asked }, ...agreed, 'authorization', scheme + basic(ours))).toEqual([]);
    }
    const theirs = `Basic ${basic('a'.repeat(100))}`;
    expect(toService({ asked }, ...agreed, 'authorization', theirs)).toEqual([`authorization: ${theirs}`]);
    expect(toService({ asked }, ...agreed, 'x_api_key', 'sk-a')).toEqual([]);
    expect(toService({ asked }, ...agreed, 'connection', 'x-api-key', 'x-api-key', 'sk-a')).toEqual([]);
  });

  it('is replaced by a header that the listing adds, and otherwise keeps its bytes', () => {
    const agreed = ['x-acf-forward', 'x-api-key,cookie'];
    const of = { asked: ['x-api-key', 'cookie'], added: { 'x-api-key': 'sk-provider' } };
    expect(toService(of, ...agreed, 'x-api-key', 'sk-a', 'cookie', 'é')).toEqual([
      `cookie: ${Buffer.from('é').toString('latin1')}`,
      'x-api-key: sk-provider',
    ]);
  });
});

it('a service gets only the credentials of its listing, unless the caller forwards its own', () => {
  const only = (of: Of, ...headers: string[]): boolean => {
    const listing = listingOf(of);
    return new UpstreamHeaders(listing, 'service.example', secrets.open(listing)).showsListingCredentialsOnly(headers);
  };
  const added = { 'x-other': '1' };
  const asked = ['x-api-key'];
  const own = ['x-acf-forward', 'x-api-key', 'x-api-key', 'sk-a'];
  expect([only({ added }), only({ signed: true }), only({ added, asked })]).toEqual([true, true, true]);
  expect([only({ asked }), only({ asked }, ...own), only({ added, asked }, ...own)]).toEqual([false, false, false]);
  // What is not forwarded is as if it had not been sent.
  expect(only({ added }, ...own)).toBe(true);
  expect(only({ added, asked }, 'x-api-key', 'sk-a')).toBe(true);
  expect(only({ added: { 'x-api-key': 'sk-provider' }, asked }, ...own)).toBe(true);
});

describe("a caller's own signature", () => {
  const own = [
    'signature',
    'sig1=:AA==:',
    'signature-input',
    'sig1=()',
    'signature_input',
    'x',
    'signature-agent',
    'y',
  ];

  it('is removed for a signed listing, so that only our signature remains', () => {
    const lines = toService({ signed: true }, ...own, 'accept', '*/*');
    expect(lines.map((line) => line.split(':')[0])).toEqual(['accept', 'signature-input', 'signature']);
    expect(lines[1]).toMatch(/^signature-input: sig1=\("@method" .*keyid="sgk_[\w-]{16}";alg="hmac-sha256"$/);
  });

  it('reaches any other listing', () => {
    expect(toService({ added: { 'x-a': '1' } }, ...own)).toHaveLength(5);
  });
});

it('most listings need none of these rules', () => {
  expect(hasUpstreamHeaders(makeListing())).toBe(false);
  for (const of of [{ added: { a: 'b' } }, { asked: ['cookie'] }, { signed: true }]) {
    expect(hasUpstreamHeaders(listingOf(of))).toBe(true);
  }
});
