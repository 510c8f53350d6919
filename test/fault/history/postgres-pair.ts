// A Postgres that can go back in time: its data folder is exchanged with an earlier copy, or a standby that got less takes over.

import { renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import postgres from 'postgres';
import { within } from '../../../src/platform/timing.ts';
import { copyData, SYNCHRONOUS, startTestPostgres, startTestStandby, type TestPostgres } from '../../support/stores.ts';
import { until } from '../../support/wait.ts';
import { FaultProxy } from '../fault-proxy.ts';

const CONNECTED_WITHIN_S = 10;
/** The longest answer is that of a promotion. The server's own timeouts do not count it: with a clock that was set back they come too late. */
const ANSWERED_WITHIN_MS = 30_000;

/** Small logs, which are copied with the data. */
const SETTINGS = { min_wal_size: '32MB', max_wal_size: '64MB' };

/** A Postgres that is not the present one any more: it can be made that again, or be thrown away. */
export type Former = Folder | Server;
type Folder = { readonly kind: 'folder'; readonly dir: string };
type Server = { readonly kind: 'server'; readonly server: TestPostgres; readonly line: FaultProxy };

export class PostgresPair {
  #primary: TestPostgres;
  #standby: TestPostgres | null = null;
  /** Through this the standby follows. */
  #line: FaultProxy;

  readonly #env: Readonly<Record<string, string>>;

  private constructor(primary: TestPostgres, line: FaultProxy, env: Readonly<Record<string, string>>) {
    this.#primary = primary;
    this.#line = line;
    this.#env = env;
  }

  /** @param env further environment variables of the servers */
  static async start(env: Readonly<Record<string, string>> = {}): Promise<PostgresPair> {
    const primary = await startTestPostgres({ settings: SETTINGS, env });
    return new PostgresPair(primary, await FaultProxy.open(primary.port), env);
  }

  get primary(): TestPostgres {
    return this.#primary;
  }

  /** Copies the data. The server is away meanwhile. @returns the copy */
  async copy(): Promise<Folder> {
    await this.#primary.stop();
    const dir = await copyData(this.#primary);
    await this.#primary.restart();
    return { kind: 'folder', dir };
  }

  /** Starts a standby. The server is away for a moment. */
  async addStandby(): Promise<void> {
    this.#line.set({ kind: 'pass' });
    this.#standby = await startTestStandby(this.#primary, { port: this.#line.port, env: this.#env });
    await until(async () => (await this.#ask('SELECT FROM pg_stat_replication')).length > 0);
  }

  /** Every commit waits from now on until the standby has it; or none does any more. */
  async waitForStandby(isWanted: boolean): Promise<void> {
    const names = isWanted ? SYNCHRONOUS.synchronous_standby_names : '';
    await this.#ask(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await this.#ask('SELECT pg_reload_conf()');
    await until(async () => {
      const [row] = await this.#ask('SHOW synchronous_standby_names');
      const isAttached = await this.#ask(`SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`);
      return row?.synchronous_standby_names === names && (!isWanted || isAttached.length > 0);
    });
  }

  /** An operator ends the waits for the standby: what waits is committed here only. */
  async cancelWaits(): Promise<void> {
    await this.#ask(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
  }

  /** From now on the standby gets nothing. */
  isolate(): void {
    this.#line.set({ kind: 'refuse' });
  }

  /** The standby gets everything again. */
  reconnect(): void {
    this.#line.set({ kind: 'pass' });
  }

  /** Replaces the data by a copy. @returns what was there before */
  async exchange({ dir }: Folder): Promise<Folder> {
    const former = `${dir}.former`;
    await this.#primary.stop();
    renameSync(this.#primary.dir, former);
    renameSync(dir, this.#primary.dir);
    await this.#primary.restart();
    return { kind: 'folder', dir: former };
  }

  /** The standby becomes primary with what it has. @returns the former primary, which runs on */
  async promote(): Promise<Server> {
    const standby = this.#standby as TestPostgres;
    const former = { kind: 'server', server: this.#primary, line: this.#line } as const;
    this.#line = await FaultProxy.open(standby.port);
    this.#primary = standby;
    this.#standby = null;
    await this.#ask('SELECT pg_promote()');
    return former;
  }

  async dropStandby(): Promise<void> {
    if (this.#standby === null) return;
    const { dir } = this.#standby;
    await this.#standby.stop();
    this.#standby = null;
    await rm(dir, { recursive: true, force: true });
  }

  /** A former server is the primary again. @returns the one that was */
  turnBack({ server, line }: Server): Server {
    const former = { kind: 'server', server: this.#primary, line: this.#line } as const;
    this.#primary = server;
    this.#line = line;
    return former;
  }

  /** Throws a former one away. */
  async discard(former: Former): Promise<void> {
    if (former.kind === 'server') {
      await former.line.close();
      await former.server.kill();
    }
    await rm(former.kind === 'server' ? former.server.dir : former.dir, { recursive: true, force: true });
  }

  async #ask(statement: string): Promise<readonly Record<string, unknown>[]> {
    return askPostgres(this.#primary, (sql) => sql.unsafe(statement));
  }

  async stop(): Promise<void> {
    await this.#line.close();
    await this.#standby?.stop();
    await this.#primary.stop();
  }
}

/** Asks a Postgres something beside the connections under test. */
export async function askPostgres<T>(
  { url }: Pick<TestPostgres, 'url'>,
  work: (sql: postgres.Sql) => Promise<T>,
): Promise<T> {
  const sql = postgres(url, {
    max: 1,
    onnotice: () => {},
    connect_timeout: CONNECTED_WITHIN_S,
    connection: { application_name: 'test' },
  });
  try {
    return await within(work(sql), ANSWERED_WITHIN_MS, () => new Error('no answer from postgres in time'));
  } finally {
    await sql.end({ timeout: 1 });
  }
}
