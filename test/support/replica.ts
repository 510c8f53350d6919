import { askPort } from '../../scripts/local/ports.mjs';
import { infoNumber } from './redis-info.mjs';
import { startTestRedis, type TestRedis } from './stores.ts';
import { TcpProxy } from './tcp-proxy.ts';
import { until } from './wait.ts';

export type TestReplica = {
  readonly server: TestRedis;
  /** Between the master and the replica: `delayMs` delays what the master passes on. */
  readonly line: TcpProxy;
  /** Waits until it has all that the master had written by now. A replica that was paused may take longer for that than a WAIT takes. */
  caughtUp(): Promise<void>;
  /** Makes it a master, as an operator or a sentinel does. */
  promote(): Promise<void>;
  close(): Promise<void>;
};

/** Starts a replica of a Redis without a password, and waits until the master knows it. */
export async function startTestReplica(master: TestRedis): Promise<TestReplica> {
  // Redis waits five seconds for more replicas, to serve them together.
  await ask(master, 'CONFIG SET repl-diskless-sync-delay 0');
  const line = await TcpProxy.open(master.port);
  const port = new URL(line.through(master.url)).port;
  const server = await startTestRedis({ args: ['--replicaof', `127.0.0.1 ${port}`] });
  await until(async () => (await ask(master, 'INFO replication')).includes('state=online'));
  const offset = async (redis: TestRedis, name: string): Promise<number> =>
    infoNumber(await ask(redis, 'INFO replication'), name);
  const caughtUp = async (): Promise<void> => {
    const written = await offset(master, 'master_repl_offset');
    await until(async () => (await offset(server, 'slave_repl_offset')) >= written);
  };
  await caughtUp();
  return {
    server,
    line,
    caughtUp,
    promote: async () => {
      await ask(server, 'REPLICAOF NO ONE');
    },
    close: async () => {
      await line.close();
      await server.stop();
    },
  };
}

/** Asks a Redis something beside the connections under test. */
export const ask = async ({ port }: TestRedis, command: string): Promise<string> =>
  (await askPort(port, `${command}\r\nQUIT\r\n`)) ?? '';
