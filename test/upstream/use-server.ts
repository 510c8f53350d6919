import { afterEach, beforeEach } from 'vitest';
import type { UpstreamClient } from '../../src/upstream/index.ts';
import { newClient, type RawServer, rawServer } from './helpers.ts';

/** Of the test under way, in a file that has called `useServer`. */
export let server: RawServer;
export let client: UpstreamClient;

/** A server that the test answers for, octet by octet, and a client: new ones for each test of a file. */
export function useServer(): void {
  beforeEach(async () => {
    server = await rawServer();
    client = newClient();
  });
  afterEach(async () => {
    await client.close();
    await server.close();
  });
}
