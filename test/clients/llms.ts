import { existsSync, mkdtempSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it } from 'vitest';
import { ERRORS } from '../../src/errors.ts';
import { type CallRecord, startService, type Usage } from '../integration/marketplace.ts';
import { scratchDir } from '../support/stores.ts';
import { until } from '../support/wait.ts';
import { type DemoMarket, textOf } from './demo-market.ts';
import { type Ended, run } from './programs.ts';

/** Between two commands, so that the output of each can be told apart. */
const MARK = '--- next command ---';

/** The shell commands of a page in Markdown, one a line, in their order. */
const commandsOf = (page: string): string[] =>
  Array.from(page.matchAll(/^```sh\n([\s\S]*?)^```/gm), ([, block = '']) => block.trimEnd().split('\n')).flat();

/** What the agent tells the operator. */
const ACCOUNT = String.raw`ACCOUNT=$(curl -sS -H "Authorization: Bearer $KEY" "$BASE/api/v1/balance/me" | sed -n 's/.*"account_id":"\([^"]*\)".*/\1/p')`;

/**
 * What an operator fills in where the page leaves something open. Nothing else comes from outside the page.
 *
 * @param adminKey  of role `admin`
 */
const filledIn = (command: string, adminKey: string): string =>
  command.replace(/^ACCOUNT='<.*>'$/, ACCOUNT).replace(/^ADMIN_KEY='<.*>'$/, `ADMIN_KEY='${adminKey}'`);

/** The line of the page that sets this variable, or defines this function. */
const lineOf = (page: string, beginning: string): string =>
  commandsOf(page).find((command) => command.startsWith(beginning)) ?? `${beginning} is missing`;

/** Every address of the page that a GET can be sent to, without those that contain `{…}`. */
const addressesOf = (page: string, base: string): string[] => [
  ...new Set(
    Array.from(page.matchAll(/\]\((http[^)]+)\)|`(\/[\w./]+)`/g), ([, link, path]) => link ?? `${base}${path}`),
  ),
];

/** Everything that /llms.txt tells an agent is tried with sh and curl only, in the order of the page. */
export function llmsTests(demo: () => DemoMarket): void {
  let page: string;
  let folder: string;
  let ended: Ended;
  let answers: string[];

  beforeAll(async () => {
    page = await (await fetch(`${demo().url}/llms.txt`)).text();
    folder = mkdtempSync(path.join(scratchDir(), 'llms-'));
    const commands = commandsOf(page).map((command) => filledIn(command, textOf(demo().market.admin)));
    const script = ['set -e', ...commands.flatMap((command) => [command, `echo; echo '${MARK}'`])].join('\n');
    ended = await run('sh', [], { cwd: folder, input: script });
    answers = ended.output.split(MARK).map((text) => text.trim());
  });

  const answerTo = (part: string): string =>
    answers[commandsOf(page).findIndex((command) => command.includes(part))] ?? '';

  it('is one page of plain text, below 200 lines, in the format of llmstxt.org', async () => {
    const response = await demo().market.request('/llms.txt');
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    // A paragraph on the operator may come to it.
    expect(page.split('\n').length).toBeLessThan(195);
    // The whole catalog would fill the context of the model that follows the page.
    expect(commandsOf(page).find((command) => command.includes('/discover'))).toContain('/discover?limit=20"');
    expect(page).toMatch(/^# \S.*\n\n> \S/);
    expect(page).toMatch(/\n## Links\n\n- \[\S[^\]]*\]\(http\S+\): \S/);
    expect(page).not.toMatch(/\{\{|undefined/);
  });

  it('has commands that all work when they are pasted into a shell that has only sh and curl', () => {
    expect([ended.code, ended.errors]).toEqual([0, '']);
    expect(answers.length).toBe(commandsOf(page).length + 1);
    // Errors of the API, of JSON-RPC, and of a tool. The tools' schemas have a property of that name.
    expect(ended.output).not.toMatch(/"error": ?"|"error":\{"code"|"isError"/);
    const programs = commandsOf(page).flatMap((command) => command.match(/(?<=^|[;({|&] ?)\b[a-z]+\b(?=[ ])/g) ?? []);
    expect(new Set(programs)).toEqual(new Set(['curl', 'echo', 'mcp', 'mv', 'sed', 'umask']));
    // The file has the secret of the key.
    expect(statSync(path.join(folder, 'tollgate-key.json')).mode & 0o777).toBe(0o600);
  });

  it('keeps the key when its commands run again, and writes no file when there is no key to write', async () => {
    const making = lineOf(page, '[ -s tollgate-key.json ]');
    const file = path.join(folder, 'tollgate-key.json');
    const before = readFileSync(file, 'utf8');
    const again = await run('sh', [], { cwd: folder, input: [lineOf(page, 'BASE='), making].join('\n') });
    expect(again).toEqual({ code: 0, output: '', errors: '' });
    expect(readFileSync(file, 'utf8')).toBe(before);

    const empty = mkdtempSync(path.join(scratchDir(), 'llms-'));
    for (const base of ['http://127.0.0.1:1', `${demo().url}/none`]) {
      const failed = await run('sh', [], { cwd: empty, input: `BASE='${base}'\n${making}` });
      expect(failed.code, base).not.toBe(0);
      expect(failed.errors, base).toMatch(/^curl: \S/);
      expect(existsSync(path.join(empty, 'tollgate-key.json')), base).toBe(false);
    }
  });

  it('has commands that each work in a fresh shell after the setup lines that the page names', async () => {
    const lines = ['BASE=', 'KEY=', 'SERVICE=', 'mcp()'].map((beginning) => lineOf(page, beginning));
    const balance = JSON.stringify({
      jsonrpc: '2.0',
      id: 4,
      method: 'tools/call',
      params: { name: 'get_balance', arguments: {} },
    });
    const { code, output, errors } = await run('sh', [], {
      cwd: folder,
      input: ['set -e', ...lines, `mcp '${balance}'`].join('\n'),
    });
    expect([code, errors]).toEqual([0, '']);
    const service = JSON.parse(answerTo('/discover/$SERVICE')) as { id: string; price: number };
    const [id, answer = ''] = output.trim().split('\n');
    expect(id).toBe(service.id);
    const left = Math.round((5 - 3 * service.price) * 1e6) / 1e6;
    expect(JSON.parse(answer)).toMatchObject({ id: 4, result: { structuredContent: { balance: left } } });
  });

  it('reports a service that nobody sells at once, instead of calling an empty address', async () => {
    for (const beginning of ['SERVICE=', 'FREE=']) {
      const line = lineOf(page, beginning).replace('limit=1', 'limit=1&min_quality=100');
      const { code, output, errors } = await run('sh', [], { input: `BASE='${demo().url}'\n${line}` });
      expect([code === 0, output], beginning).toEqual([false, '']);
      expect(errors, beginning).toContain('no service found');
    }
  });

  it('leads an agent that knows nothing else to paid calls at the announced price', async () => {
    expect(JSON.parse(answerTo('/keys/me'))).toMatchObject({ role: 'buyer', owner_id: 'my-agent' });
    expect(JSON.parse(answerTo('/balance/me'))).toMatchObject({ balance: 0 });
    expect(JSON.parse(answerTo('/admin/credits'))).toMatchObject({ amount: 5 });
    const { services } = JSON.parse(answerTo('max_price=0.01')) as { services: { id: string; price: number }[] };
    const service = JSON.parse(answerTo('/discover/$SERVICE')) as { id: string; price: number; proxy_path: string };
    expect(services.map(({ id }) => id)).toContain(service.id);
    const paid = answerTo('?text=Hello%20world');
    expect(paid).toMatch(/^HTTP\/1\.1 200 /);
    expect(paid).toContain(`X-ACF-Amount: ${service.price}\r`);
    expect(JSON.parse(paid.slice(paid.indexOf('{')))).toMatchObject({ words: 2 });
    expect(answerTo("--data-binary 'Hello again, world'")).toContain('"words": 3');

    const free = answerTo('/$FREE/hello');
    expect(free).toMatch(/^HTTP\/1\.1 200 /);
    expect(free).toMatch(/\r\nX-ACF-Amount: 0\r\nX-ACF-Free-Tier: false\r\n/);
    const { result } = JSON.parse(answerTo('"id":3'));
    expect(result.structuredContent).toMatchObject({ status: 200, body: { words: 2 }, amount: service.price });

    const saved = JSON.parse(readFileSync(path.join(folder, 'tollgate-key.json'), 'utf8'));
    const usage = await until(async () => {
      const now = await demo().market.json<Usage>('/api/v1/usage/me', { key: saved });
      return now.total_calls === 4 ? now : null;
    });
    const charged = usage.records.map(({ amount, outcome }: CallRecord) => [amount, outcome]);
    expect(charged).toEqual([...Array(3).fill([service.price, 'completed']), [0, 'completed']]);
  });

  it('distinguishes answers of a service from gateway errors correctly, and says that a 5xx of the service is free', async () => {
    const { market } = demo();
    const key = await market.buyer(1);
    const ask = (headers = {}): Promise<Response> =>
      fetch(demo().proxyUrl('Flaky'), { headers: { 'X-Api-Key': textOf(key), ...headers } });
    const answers = [await ask(), await ask()];
    expect(answers.map(({ status }) => status)).toEqual([200, 500]);
    for (const { status, headers } of answers) {
      expect(headers.get('content-security-policy')).toBe('sandbox');
      expect(headers.get('x-acf-amount')).toBe(status === 500 ? '0' : demo().priceOf('Flaky'));
    }
    const refused = await ask({ 'X-ACF-Max-Amount': '0' });
    expect([refused.status, refused.headers.get('content-security-policy')]).toEqual([412, null]);
  });

  it('tells an agent that got no response how long to wait before it can see whether it paid', async () => {
    const { market } = demo();
    const service = await startService(() => {});
    const path = await market.service({ endpoint: service.url, price: 0.1 });
    const key = await market.buyer(1);
    const leaving = new AbortController();
    const headers = { Authorization: `Bearer ${textOf(key)}` };
    const call = fetch(`${market.baseUrl}${path}/`, { headers, signal: leaving.signal });
    await until(async () => (await market.balance(key)).held > 0);
    leaving.abort();
    await expect(call).rejects.toThrow();
    await until(async () => (await market.balance(key)).held === 0);
    const [, seconds = '0'] = page.match(/so wait (\d+) more seconds/) ?? [];
    await sleep(Number(seconds) * 1000);
    const { records } = await market.json<Usage>('/api/v1/usage/me', { key });
    expect(records.map(({ amount, outcome }: CallRecord) => [amount, outcome])).toEqual([[0.1, 'completed']]);
    await service.close();
  });

  it('says for every error code of the gateway what to do', () => {
    const unsaid = Object.entries(ERRORS).filter(
      ([code, { status }]) =>
        !new RegExp(`^\\| [\\d, ]*\\b${status}\\b[\\d, ]* \\|[^|]*\`${code}\`[^|]*\\| \\S`, 'm').test(page),
    );
    expect(unsaid).toEqual([]);
  });

  it('links only to addresses that exist', async () => {
    const addresses = addressesOf(page, demo().url);
    expect(addresses.length).toBeGreaterThan(3);
    const key = await demo().market.buyer(0);
    const missing: string[] = [];
    for (const address of addresses) {
      const { pathname } = new URL(address);
      const inApi = pathname === '/api/v1' ? '/api/v1/discover' : pathname;
      const { status } = await demo().market.request(inApi, { key });
      if (status !== 200) missing.push(`${address}: ${status}`);
    }
    expect(missing).toEqual([]);
  });

  it('names the gateway by the Host of the request, and refuses a Host that a shell could take for a command', async () => {
    const ask = (host: string): Promise<Ended> =>
      run('curl', ['-sS', '-i', '-H', `Host: ${host}`, '-H', 'X-Forwarded-Proto: https', `${demo().url}/llms.txt`]);
    // Nobody in front is trusted here, so X-Forwarded-Proto is the caller's invention.
    for (const host of ['gateway.example', 'my_gateway:8080', '[::1]:8080', '192.0.2.1']) {
      expect((await ask(host)).output).toContain(`BASE='http://${host}'\n`);
    }
    for (const host of ["a';reboot;'", '$(reboot)', 'a&b', `a.${'b'.repeat(300)}`]) {
      const { output } = await ask(host);
      expect(output).toMatch(/^HTTP\/1\.1 400 /);
      expect(output).toContain('"error":"invalid_request"');
      expect(output).not.toContain('reboot');
    }
  });
}
