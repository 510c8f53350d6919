import { afterEach, expect, test, vi } from 'vitest';
import type { ResolvedAddress } from '../../src/upstream/index.ts';
import { Exchange, newClient, OK, type RawServer, rawServer } from './helpers.ts';

let server: RawServer;
afterEach(() => server.close());

const PUBLIC: ResolvedAddress = { address: '203.0.114.1', family: 4 };
const LOOPBACK: ResolvedAddress = { address: '127.0.0.1', family: 4 };

/** Resolves the name to a different address at each look-up, as in a DNS rebinding attack. */
function rebinding(...answers: ResolvedAddress[][]) {
  let next = 0;
  return vi.fn(async (_name: string) => answers[Math.min(next++, answers.length - 1)] as ResolvedAddress[]);
}

test('a name is looked up once per connection, so that the checked address is the one that is dialled', async () => {
  server = await rawServer(async (peer) => {
    await peer.takeRequest();
    peer.send(OK);
  });
  const lookup = rebinding([LOOPBACK], [{ address: '10.0.0.1', family: 4 }]);
  const client = newClient({ lookup });
  const exchange = new Exchange(client, `http://rebind.example:${server.port}/`);
  expect(await exchange.outcome()).toBe(200);
  expect(lookup).toHaveBeenCalledTimes(1);
  const [peer] = server.peers;
  // The connection goes to the address, not to the name.
  expect(peer?.socket.localAddress).toBe('127.0.0.1');
  await client.close();
});

test.each<[string, ResolvedAddress[]]>([
  ['a forbidden address', [LOOPBACK]],
  ['a public and a forbidden one', [PUBLIC, LOOPBACK]],
  ['a forbidden and a public one', [LOOPBACK, PUBLIC]],
  ['an IPv4-mapped one', [{ address: '::ffff:127.0.0.1', family: 6 }]],
  ['a NAT64 one', [{ address: '64:ff9b::7f00:1', family: 6 }]],
  ['a metadata address', [{ address: '169.254.169.254', family: 4 }]],
  ['something that is not an address', [{ address: '127.1', family: 4 }]],
])('a name that resolves to %s is not dialled at all', async (_what, answer) => {
  server = await rawServer();
  const client = newClient({ allowCidrs: [], lookup: rebinding(answer) });
  const exchange = new Exchange(client, `http://rebind.example:${server.port}/`);
  expect(await exchange.outcome()).toBe('address_forbidden');
  expect(server.peers).toEqual([]);
  await client.close();
});

test('a name whose next answer is forbidden is refused from then on, even if earlier calls succeeded', async () => {
  server = await rawServer(async (peer) => {
    await peer.takeRequest();
    peer.send(OK.replace('\r\n', '\r\nConnection: close\r\n'));
  });
  const lookup = rebinding([LOOPBACK], [{ address: '169.254.169.254', family: 4 }]);
  const client = newClient({ lookup });
  const url = `http://rebind.example:${server.port}/`;
  expect(await new Exchange(client, url).outcome()).toBe(200);
  // Makes the first answer too old. The timers of sockets use another clock.
  const now = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_000);
  try {
    expect(await new Exchange(client, url).outcome()).toBe('address_forbidden');
  } finally {
    now.mockRestore();
  }
  expect(lookup).toHaveBeenCalledTimes(2);
  await client.close();
});
