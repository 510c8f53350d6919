import { describe, expect, it } from 'vitest';
import { newKeyId, newSecret } from '../../src/keys/credentials.ts';
import { requestHeaderLines, responseHeaderLines } from '../../src/proxy/header-rules.ts';

const isAscii = (headers: string[]): boolean => /^[\0-\x7f]*$/.test(headers.join(''));

const toService = (...headers: string[]): string[] =>
  requestHeaderLines({ headers, isAscii: isAscii(headers) }, 'usage-1', 'buyer-1')
    .split('\r\n')
    .slice(0, -1)
    .filter((line) => !/^(x-acf-usage-id|x-acf-buyer): /.test(line));

const locations = { location: (value: string) => (value === 'elsewhere' ? null : `<${value}>`) };
const toCaller = (...headers: string[]): string[] => {
  const [nothing, sandbox, ...lines] = responseHeaderLines(headers, locations).split('\r\n');
  expect([nothing, sandbox]).toEqual(['', 'Content-Security-Policy: sandbox']);
  return lines;
};

describe('the service gets', () => {
  it('the usage id, the pseudonym and Via, once each', () => {
    const lines = requestHeaderLines(
      { headers: ['x-acf-usage-id', 'forged', 'x-acf-buyer', 'forged'], isAscii: true },
      'usage-1',
      'buyer-1',
    );
    expect(lines).toBe('via: 1.1 tollgate\r\nx-acf-usage-id: usage-1\r\nx-acf-buyer: buyer-1\r\n');
  });

  it.each([
    'authorization',
    'cookie',
    'x-api-key',
    'api-key',
    'x-goog-api-key',
    'x-auth-token',
    'proxy-authorization',
    'proxy-anything',
    'connection',
    'keep-alive',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'content-length',
    'x-acf-max-amount',
    'x-forwarded-for',
    'x-forwarded-host',
    'expect',
    'host',
    'forwarded',
    'x-real-ip',
    'true-client-ip',
    'cf-connecting-ip',
    'cf-connecting-ipv6',
    'from',
    'x-client-ip',
    'x-cluster-client-ip',
    'fastly-client-ip',
    'x-original-forwarded-for',
    'forwarded-for',
    'x-forwarded',
    'client-ip',
    'x-original-for',
    'x-remote-addr',
    'x-remote-ip',
    'x-originating-ip',
    'x-envoy-external-address',
    'x-azure-clientip',
    'x-azure-socketip',
    'fly-client-ip',
    'x-vercel-forwarded-for',
    'do-connecting-ip',
    'x-appengine-user-ip',
    'cf-pseudo-ipv4',
    'wl-proxy-client-ip',
    'access-control-request-method',
    'access-control-request-headers',
    'access-control-request-private-network',
  ])('no %s', (name) => {
    expect(toService(name, 'secret', 'accept', '*/*')).toEqual(['accept: */*', 'via: 1.1 tollgate']);
  });

  it.each([
    'x_acf_buyer',
    'x-acf_usage_id',
    'x_forwarded_for',
    'proxy_authorization',
    'content_length',
    'transfer_encoding',
    'x_real_ip',
    'x_api_key',
    'x-goog_api_key',
  ])('no %s, which CGI cannot distinguish from the same name with dashes', (name) => {
    expect(toService(name, 'forged', 'accept', '*/*')).toEqual(['accept: */*', 'via: 1.1 tollgate']);
  });

  it.each([62, 63, 64, 65, 1_000])('no name of %d characters that begins with a blocked prefix', (length) => {
    expect(toService('x-forwarded-'.padEnd(length, 'a'), '1')).toEqual(['via: 1.1 tollgate']);
    const other = 'x-forwarder-'.padEnd(length, 'a');
    expect(toService(other, '1')).toEqual([`${other}: 1`, 'via: 1.1 tollgate']);
  });

  it('names that only begin or end like a blocked name', () => {
    const names = [
      'hosts',
      'ahost',
      'cookie2',
      'x-real-ip4',
      'froma',
      'proxy',
      'x-acf',
      'tea',
      't',
      'x-api-keys',
      'api-keyx',
    ];
    expect(toService(...names.flatMap((name) => [name, '1']))).toEqual([
      ...names.map((name) => `${name}: 1`),
      'via: 1.1 tollgate',
    ]);
  });

  it('no API key of the gateway in any header, wherever the key is in the value', () => {
    const ours = `${newKeyId()}:${newSecret()}`;
    for (const value of [ours, `Bearer ${ours}`, `a=b; key=${ours}; c`, `acf_${ours}`, `é ${ours}`, `${ours}${ours}`]) {
      expect(toService('x-custom', value, 'via', value, 'accept', '*/*')).toEqual(['accept: */*', 'via: 1.1 tollgate']);
    }
    const others = [
      ours.slice(1),
      ours.slice(0, -1),
      ours.replace(':', ';'),
      `acf_ sk_ ${'x'.repeat(80)}`,
      newSecret(),
    ];
    for (const value of others) {
      expect(toService('x-custom', value)).toEqual([`x-custom: ${value}`, 'via: 1.1 tollgate']);
    }
  });

  it('other names with underscores unchanged', () => {
    expect(toService('openai_beta', 'x')).toEqual(['openai_beta: x', 'via: 1.1 tollgate']);
  });

  it('no header that Connection names, in either order of the two', () => {
    expect(
      toService('x-hop', '1', 'connection', 'close, X-Hop', 'x-stays', '2', 'connection', 'x-other', 'x-other', '3'),
    ).toEqual(['x-stays: 2', 'via: 1.1 tollgate']);
  });

  it('what a browser says about the page that sent the request', () => {
    const headers = ['origin', 'http://a.test', 'referer', 'http://a.test/', 'sec-fetch-site', 'cross-site'];
    expect(toService(...headers)).toEqual([
      'origin: http://a.test',
      'referer: http://a.test/',
      'sec-fetch-site: cross-site',
      'via: 1.1 tollgate',
    ]);
  });

  it('a repeated header as often as it was sent', () => {
    expect(toService('accept', 'a', 'accept', 'b')).toEqual(['accept: a', 'accept: b', 'via: 1.1 tollgate']);
  });

  it('the Via of earlier proxies, with the gateway appended', () => {
    expect(toService('via', '1.1 edge')).toEqual(['via: 1.1 edge, 1.1 tollgate']);
  });

  it('a value that is not ASCII with the same bytes', () => {
    const line = toService('x-name', 'café')[0] as string;
    expect(Buffer.from(line, 'latin1').toString('utf8')).toBe('x-name: café');
  });
});

describe('the caller gets', () => {
  it.each([
    'Set-Cookie',
    'X-ACF-Amount',
    'X-Acf-Anything',
    'X-RateLimit-Limit',
    'RateLimit',
    'RateLimit-Policy',
    'Connection',
    'Keep-Alive',
    'Transfer-Encoding',
    'Content-Length',
    'Trailer',
    'Upgrade',
    'Proxy-Authenticate',
    'X-Request-Id',
    'Strict-Transport-Security',
    'Alt-Svc',
    'Clear-Site-Data',
    'Service-Worker-Allowed',
    'Public-Key-Pins',
    'NEL',
    'Report-To',
    'Use-As-Dictionary',
    'Access-Control-Allow-Origin',
    'Access-Control-Allow-Credentials',
    'access-control-expose-headers',
    'ACCESS_CONTROL_ALLOW_ORIGIN',
  ])('no %s from the service', (name) => {
    expect(toCaller(name, 'x', 'Content-Type', 'text/plain')).toEqual(['Content-Type: text/plain']);
  });

  it('Location and Content-Location if they lead through the proxy, and not if they lead elsewhere', () => {
    expect(toCaller('Location', '/a', 'CONTENT-LOCATION', '/b')).toEqual(['Location: </a>', 'CONTENT-LOCATION: </b>']);
    expect(toCaller('location', 'elsewhere', 'Content-Location', 'elsewhere', 'X', 'y')).toEqual(['X: y']);
    expect(toCaller('Connection', 'Location', 'Location', '/a', 'Allocation', '/b')).toEqual(['Allocation: /b']);
  });

  it.each(['SET-COOKIE', 'set_cookie', 'Set-cookiE', 'DATE', 'x_rateLIMIT_Reset', 'RateLimit'.padEnd(100, 'x')])(
    'no %s from the service, in any spelling',
    (name) => {
      expect(toCaller(name, 'x', 'Set-Cookies', 'a', 'Datum', 'b')).toEqual(['Set-Cookies: a', 'Datum: b']);
    },
  );

  it('all other names and values as the service wrote them', () => {
    expect(toCaller('ETag', '"a"', 'Timing-Allow-Origin', '*', 'x-custom', '1', 'X-Custom', '2')).toEqual([
      'ETag: "a"',
      'Timing-Allow-Origin: *',
      'x-custom: 1',
      'X-Custom: 2',
    ]);
  });

  it('the content policy of the service beside that of the gateway: both apply', () => {
    expect(toCaller('Content-Security-Policy', "default-src 'self'")).toEqual([
      "Content-Security-Policy: default-src 'self'",
    ]);
  });

  it('no header that Connection names', () => {
    expect(toCaller('X-Hop', '1', 'Connection', 'x-hop', 'X-Stays', '2')).toEqual(['X-Stays: 2']);
  });
});
