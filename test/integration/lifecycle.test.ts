import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { patternBytes, rawServer } from '../upstream/helpers.ts';
import { Marketplace, startService } from './marketplace.ts';
import { RawCaller, requestText } from './raw-caller.ts';
import { PRICE, Scene } from './scene.ts';

let market: Marketplace;
let scene: Scene;
afterEach(async () => {
  await scene.close();
  await market.stop();
});

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** What happens to a new connection to the gateway. */
function knock(): Promise<string> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(market.baseUrl);
    const socket = connect(Number(port), hostname);
    socket.on('connect', () => resolve('connected'));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)));
    socket.on('close', () => socket.destroy());
  });
}

describe('a gateway that is stopped', () => {
  it('finishes the calls under way, reports that it is not ready, and accepts no new connections', async () => {
    market = await Marketplace.start({ DRAIN_SECONDS: '20' });
    scene = await Scene.open(market);
    const [plain, stream, idle] = [await scene.call(), await scene.call(), await RawCaller.connect(market.baseUrl)];
    const [first, second] = [await scene.service.peer(0), await scene.service.peer(1)];
    await Promise.all([first.takeRequest(), second.takeRequest()]);
    second.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n');
    await until(() => [plain, stream].some(({ received }) => received.includes('one')));
    const stopping = market.stopGateway();
    await until(async () => (await knock()) === 'ECONNREFUSED');

    const ready = await idle.exchange('GET /readyz');
    expect([ready.status, ready.get('connection')]).toEqual([503, 'close']);
    await idle.end();

    first.send(OK);
    second.send('3\r\ntwo\r\n0\r\n\r\n');
    const answers = await Promise.all([plain.response(), stream.response()]);
    expect(answers.map(({ body }) => body.toString()).sort()).toEqual(['ok', 'onetwo']);
    expect(await stopping).toEqual({ callsCut: 0, unsettled: 0 });
    expect(await knock()).toBe('ECONNREFUSED');

    await market.settled();
    const rows = await market.stores.sql`
      SELECT outcome, amount::int FROM calls WHERE account_id = ${scene.buyer.account_id}`;
    expect(rows.map(({ outcome, amount }) => [outcome, amount])).toEqual(Array(2).fill(['completed', PRICE * 1e6]));
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
  });

  it('cuts calls that do not finish in time and refunds them, because it was not the caller that left', async () => {
    market = await Marketplace.start({ DRAIN_SECONDS: '1' });
    scene = await Scene.open(market);
    const [silent, begun] = [await scene.call(), await scene.call()];
    const peer = await scene.service.peer(1);
    await Promise.all([peer.takeRequest(), (await scene.service.peer(0)).takeRequest()]);
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun');
    await until(() => [silent, begun].some(({ received }) => received.includes('begun')));
    expect(await market.stopGateway()).toEqual({ callsCut: 2, unsettled: 0 });
    await Promise.all([silent.end(), begun.end()]);
    await market.settled();
    const rows = await market.stores.sql`
      SELECT outcome, amount::int FROM calls WHERE account_id = ${scene.buyer.account_id}`;
    expect(rows.map(({ outcome, amount }) => [outcome, amount])).toEqual(Array(2).fill(['refunded:unavailable', 0]));
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
    expect(await knock()).toBe('ECONNREFUSED');
  });

  it('delivers to a slow reader everything its service has sent', async () => {
    market = await Marketplace.start({ DRAIN_SECONDS: '20' });
    const body = patternBytes(12_000_000);
    const service = await startService((_request, response) => {
      response.write(body.subarray(0, 10));
      response.end(body.subarray(10));
    });
    scene = await Scene.open(market, undefined, { endpoint: service.url });
    const caller = await scene.call();
    const head = await caller.head();
    expect(head.get('transfer-encoding')).toBe('chunked');
    caller.socket.pause();
    const stopping = market.stopGateway();
    await until(async () => (await knock()) === 'ECONNREFUSED');
    caller.socket.resume();
    const rest = await caller.end();
    expect(rest.subarray(-5).toString()).toBe('0\r\n\r\n');
    expect(await stopping).toEqual({ callsCut: 0, unsettled: 0 });
    await service.close();
  });
});

describe('the log', () => {
  it('contains no secret, whatever goes wrong', async () => {
    market = await Marketplace.start();
    const marks = ['Cookie-Mark', 'Query-Mark', 'Header-Mark', 'Body-Mark', 'Answer-Mark'];
    const [cookie, query, header, body, answer] = marks as [string, string, string, string, string];
    let reply = OK;
    scene = await Scene.open(market, async (peer) => {
      for (;;) {
        await peer.until((received) => received.endsWith(body));
        peer.received = '';
        peer.send(reply);
        if (reply !== OK) peer.socket.end();
      }
    });
    const { buyer, path } = scene;
    const closed = await rawServer();
    const gone = await market.service({ endpoint: closed.url });
    await closed.close();
    const priced = await market.service({ endpoint: closed.url, price: 9 });
    const call = async (target: string, secret = buyer.secret): Promise<number> => {
      const caller = await RawCaller.connect(market.baseUrl);
      const headers = [`Cookie: ${cookie}`, `X-Api-Key: ${header}`];
      caller.send(requestText(`POST ${target}?token=${query}`, { key: { ...buyer, secret }, headers, body }));
      const status = await caller.response().then(
        (response) => response.status,
        () => 0,
      );
      caller.destroy();
      return status;
    };
    const wrong = `${buyer.secret.slice(0, -1)}${buyer.secret.endsWith('0') ? '1' : '0'}`;
    const statuses = [
      await call(path),
      await call(gone),
      await call(priced),
      await call(path, wrong),
      await call('/nothing'),
    ];
    for (reply of [
      `HTTP/1.1 200 OK\r\nX: \0${answer}\r\n\r\n`,
      `${answer}\r\n\r\n`,
      `HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n${answer}`,
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n${answer}\r\n`,
      `HTTP/1.1 500 ${answer}\r\nContent-Length: 0\r\n\r\n`,
    ]) {
      statuses.push(await call(path));
    }
    market.redis.pause();
    statuses.push(await call(path));
    market.redis.resume();
    // An error inside the gateway.
    await until(async () => (await market.metric('tollgate_settlements_unconfirmed')) === 0);
    await market.settled();
    await market.stores.sql`ALTER TABLE credits RENAME TO credits_gone`;
    const created = await market.request('/api/v1/admin/credits', {
      key: market.admin,
      method: 'POST',
      body: { account_id: buyer.account_id, amount: 1, reference: query },
    });
    const internal = await created.text();
    expect(statuses).toEqual([200, 502, 402, 401, 404, 502, 502, 0, 0, 500, 503]);
    expect(created.status).toBe(500);
    expect(internal).not.toMatch(/credits|relation|postgres|sql/i);
    const requestId = created.headers.get('x-request-id') as string;
    expect(market.log.lines.filter((line) => line.includes(requestId) && line.includes('credits'))).toHaveLength(1);

    const log = market.log.lines.join('\n');
    expect(log).toContain('service failed');
    const secrets = [buyer, market.admin, market.provider].flatMap(({ secret }) => [secret, secret.slice(3, 40)]);
    for (const secret of [...secrets, wrong, ...marks, 'Bearer']) expect(log).not.toContain(secret);
    expect(log).not.toMatch(/postgres(ql)?:\/\/|redis:\/\//);
  });
});
