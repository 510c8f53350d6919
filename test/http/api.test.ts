import { expect, it } from 'vitest';
import type { CallerStream, RequestHead } from '../../src/gate/caller-io.ts';
import type { Gate } from '../../src/gate/gate.ts';
import { Api } from '../../src/http/api.ts';
import { PagePlaces, placesFor } from '../../src/http/page-places.ts';
import type { Route } from '../../src/http/route.ts';
import { QUIET } from '../support/store.ts';

/** @returns how a response with this body is sent, and how many bytes it declares */
async function leavesAs(body: string): Promise<[how: string, bytes: number]> {
  const route: Route = {
    method: 'GET',
    path: '/page',
    summary: 'A page',
    access: 'anyone',
    unmetered: true,
    responses: {},
    handle: async () => ({ status: 200, body }),
  };
  const api = new Api({
    gate: { limitOf: () => 60 } as unknown as Gate,
    places: new PagePlaces(placesFor(10)),
    routes: [route],
    log: QUIET,
  });
  const head = { method: 'GET', path: '/page', headers: [], bodyLength: 0, fault: null } as unknown as RequestHead;
  let left: [string, number] = ['not at all', 0];
  const stream = {
    address: '192.0.2.1',
    attach() {},
    respond: (_status: number, _lines: string, sent: string) => {
      left = ['whole', Buffer.byteLength(sent)];
    },
    begin: (_status: number, _lines: string, _isAscii: boolean, contentLength: number) => {
      left = ['as it is read', contentLength];
    },
    write: () => true,
    end() {},
  } as unknown as CallerStream;
  await api.handle(head, stream);
  return left;
}

it('a response of 64 KiB or more, counted in bytes and not in characters, is sent as its reader takes it', async () => {
  expect(await leavesAs('x'.repeat(65_535))).toEqual(['whole', 65_535]);
  expect(await leavesAs('x'.repeat(65_536))).toEqual(['as it is read', 65_536]);
  expect(await leavesAs('\u4e2d'.repeat(30_000))).toEqual(['as it is read', 90_000]);
});
