import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import type { Key } from '../integration/marketplace.ts';
import { scratchDir } from '../support/stores.ts';
import { type DemoMarket, textOf } from './demo-market.ts';
import { type Ended, run } from './programs.ts';

const WORDS = 180_000;
/** Long enough that curl asks with `Expect: 100-continue`, and short enough for the demo service. */
const LONG_TEXT = 'word '.repeat(WORDS);

/** With the standard library only: GET, POST, a chunked POST, and an error with its body. Prints one JSON line. */
const PYTHON = `
import json, os, urllib.error, urllib.request
def call(key, **more):
    request = urllib.request.Request(os.environ['SERVICE'], headers={'Authorization': 'Bearer ' + os.environ[key]}, **more)
    with urllib.request.urlopen(request, timeout=20) as response:
        return [json.load(response)['words'], response.headers['X-ACF-Amount']]
def refused(key):
    try:
        return call(key)
    except urllib.error.HTTPError as error:
        return [error.code, json.load(error)['error']]
with urllib.request.urlopen(urllib.request.Request(os.environ['EVENTS'], headers={'X-Api-Key': os.environ['BUYER']}), timeout=20) as stream:
    events = [line.decode().strip() for line in stream if line.startswith(b'event:')]
print(json.dumps([call('BUYER'), call('BUYER', data=b'a b'), call('BUYER', data=iter([b'a b', b' c'])), refused('POOR'), events]))
`;

/** curl with each of its habits that a gateway can get wrong, and Python's urllib. */
export function commandLineTests(demo: () => DemoMarket): void {
  let buyer: Key;
  let url: string;
  let price: string;

  beforeAll(async () => {
    buyer = await demo().market.buyer(1);
    url = demo().proxyUrl('Text Statistics');
    price = demo().priceOf('Text Statistics');
  });

  /** Runs curl with the buyer's key. The head of the response comes first in the output. */
  const curl = (...args: string[]): Promise<Ended> =>
    run('curl', ['-sS', '-i', '-H', `Authorization: Bearer ${textOf(buyer)}`, ...args], { input: 'three more words' });

  const expectWords = ({ code, errors, output }: Ended, words: number): void => {
    expect([code, errors]).toEqual([0, '']);
    expect(output).toMatch(/^HTTP\/1\.1 (?:100|200) /);
    expect(output).toContain(`X-ACF-Amount: ${price}\r\n`);
    expect(output).toContain(`"words": ${words}`);
  };

  it.each([
    ['a GET', ['?text=one%20two'], 2],
    ['a POST', ['--data-binary', 'one two three', ''], 3],
    ['--compressed', ['--compressed', '?text=one'], 1],
    ['-T -, which uploads in chunks and asks first whether to', ['-T', '-', ''], 3],
  ])('curl: %s', async (_, args, words) => {
    const withUrls = args.map((arg) => (arg === '' || arg.startsWith('?') ? url + arg : arg));
    expectWords(await curl(...withUrls), words);
  });

  it('curl: two URLs on one connection', async () => {
    const { code, output } = await curl(
      '-w',
      '\nconnects: %{num_connects}\n',
      `${url}?text=one`,
      `${url}?text=one%20two`,
    );
    expect([code, output.match(/^connects: .*$|"words": \d/gm)]).toEqual([
      0,
      ['"words": 1', 'connects: 1', '"words": 2', 'connects: 0'],
    ]);
  });

  it('curl: Expect: 100-continue before a long body is answered at once, not after a second of silence', async () => {
    const file = path.join(scratchDir(), `long-${process.pid}.txt`);
    writeFileSync(file, LONG_TEXT);
    const ended = await curl(
      '-H',
      'Expect: 100-continue',
      '--expect100-timeout',
      '15',
      '--data-binary',
      `@${file}`,
      url,
    );
    expectWords(ended, WORDS);
    expect(ended.output).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
  });

  it('curl: HEAD, sent with -I, returns the headers of the call and ends', async () => {
    const { code, output } = await curl('-I', url);
    expect(code).toBe(0);
    expect(output).toMatch(new RegExp(`^HTTP/1\\.1 200 [\\s\\S]*X-ACF-Amount: ${price}\r\n`));
    expect(output.endsWith('\r\n\r\n')).toBe(true);
  });

  it('curl: -N prints an event stream that ends', async () => {
    const { code, output } = await curl('-N', `${demo().proxyUrl('Event Stream')}?events=2&interval_ms=20`);
    expect(code).toBe(0);
    expect(output.match(/^event: .*$/gm)).toEqual(['event: tick', 'event: tick', 'event: done']);
  });

  it('curl: an error has a readable body, and --fail-with-body gives a script a failing exit code', async () => {
    const poor = await demo().market.buyer(0);
    const ended = await run('curl', ['-sS', '--fail-with-body', '-H', `X-Api-Key: ${textOf(poor)}`, url]);
    expect(ended.code).toBe(22);
    expect(JSON.parse(ended.output)).toMatchObject({ error: 'insufficient_balance', required: Number(price) });
  });

  it('curl: a protocol feature that the gateway does not support is refused, and costs nothing', async () => {
    const before = await demo().market.balance(buyer);
    const upgrade = await curl('--http2', url);
    expect(upgrade.output).toMatch(/^HTTP\/1\.1 426 [\s\S]*upgrade_not_supported/);
    const old = await curl('--http1.0', url);
    expect(old.output).toMatch(/^HTTP\/1\.1 505 /);
    // HTTP/2 without asking: the connection ends, and curl says so.
    expect((await curl('--http2-prior-knowledge', url)).code).not.toBe(0);
    await demo().market.settled();
    expect(await demo().market.balance(buyer)).toEqual(before);
  });

  it("Python's urllib: GET, POST, a chunked POST, an event stream line by line, and an error with its body", async () => {
    const poor = await demo().market.buyer(0);
    const env = {
      SERVICE: url,
      EVENTS: `${demo().proxyUrl('Event Stream')}?events=2&interval_ms=20`,
      BUYER: textOf(buyer),
      POOR: textOf(poor),
    };
    const { code, output, errors } = await run('python3', ['-c', PYTHON], { env });
    expect([code, errors]).toEqual([0, '']);
    expect(JSON.parse(output)).toEqual([
      [0, price],
      [2, price],
      [3, price],
      [402, 'insufficient_balance'],
      ['event: tick', 'event: tick', 'event: done'],
    ]);
  });
}
