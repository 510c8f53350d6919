// Two Redis servers, each of which can be the master, and the other its replica. What a master passes on goes through a proxy, so that a
// replica can be made to lag.

import { ask } from '../../support/replica.ts';
import { startTestRedis, type TestRedis } from '../../support/stores.ts';
import { until } from '../../support/wait.ts';
import { FaultProxy } from '../fault-proxy.ts';

/** A replica tries again to connect once a second, and then copies everything. */
const FOLLOWED_WITHIN_MS = 20_000;

type Member = {
  readonly server: TestRedis;
  /** Through this the other one follows it. */
  readonly line: FaultProxy;
};

export class RedisPair {
  readonly #members: readonly [Member, Member];
  #master: 0 | 1 = 0;
  #isPaired = false;

  private constructor(members: readonly [Member, Member]) {
    this.#members = members;
  }

  static async start(env: Readonly<Record<string, string>> = {}): Promise<RedisPair> {
    const member = async (): Promise<Member> => {
      // Redis waits five seconds for more replicas, to serve them together. What it has acknowledged is on its disk.
      const args = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'];
      const server = await startTestRedis({ appendonly: true, appendfsync: 'always', args, env });
      return { server, line: await FaultProxy.open(server.port) };
    };
    return new RedisPair([await member(), await member()]);
  }

  get master(): TestRedis {
    return this.#members[this.#master].server;
  }

  get replica(): TestRedis {
    return this.#members[this.#other].server;
  }

  get #other(): 0 | 1 {
    return this.#master === 0 ? 1 : 0;
  }

  /** The other one becomes a replica, whatever it had, and has everything when this resolves. */
  async follow(): Promise<void> {
    this.#isPaired = true;
    await this.#follows(this.replica, this.#members[this.#master].line);
  }

  /** After a restart of the master. Its replica, if it has one, connects again only after a while. */
  async followAgain(): Promise<void> {
    if (this.#isPaired) await this.follow();
  }

  /** From now on the replica gets nothing, and what is on its way is lost. */
  isolate(): void {
    this.#members[this.#master].line.set({ kind: 'refuse' });
  }

  /** The replica becomes a master with what it has. The former one goes on as it is, and believes that it is one too. */
  async promote(): Promise<void> {
    await ask(this.replica, 'REPLICAOF NO ONE');
    this.#master = this.#other;
  }

  /** Nothing is changed in either server: clients are to be led to the other one again. */
  turnBack(): void {
    this.#master = this.#other;
  }

  /** The master takes over what its lagging replica has, by following it for a moment: the same process, with older data. */
  async followReplicaForAMoment(): Promise<void> {
    const { line } = this.#members[this.#other];
    await ask(this.replica, 'REPLICAOF NO ONE');
    await this.#follows(this.master, line);
    await ask(this.master, 'REPLICAOF NO ONE');
  }

  async #follows(server: TestRedis, line: FaultProxy): Promise<void> {
    line.set({ kind: 'pass' });
    const leader = server === this.#members[0].server ? this.#members[1].server : this.#members[0].server;
    await ask(server, `REPLICAOF 127.0.0.1 ${line.port}`);
    await until(async () => {
      const of = await ask(leader, 'INFO replication');
      const at = await ask(server, 'INFO replication');
      const field = (name: string, info: string): string | undefined =>
        new RegExp(`^${name}:(\\w+)`, 'm').exec(info)?.[1];
      if (field('master_link_status', at) !== 'up' || field('master_replid', at) !== field('master_replid', of))
        return false;
      // The link is up once it has the copy. The leader passes on what came after that only when it has acknowledged the copy.
      return Number(field('slave_repl_offset', at)) >= Number(field('master_repl_offset', of));
    }, FOLLOWED_WITHIN_MS);
  }

  async stop(): Promise<void> {
    for (const { server, line } of this.#members) {
      await line.close();
      await server.stop();
    }
  }
}
