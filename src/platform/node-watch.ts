import { Job, type JobOptions } from './job.ts';
import { type NodeInfo, readNodeInfo } from './redis-node.ts';
import type { RedisStore } from './redis-store.ts';

/** How often the nodes are asked: one INFO for each node, which takes Redis 0.1 ms. */
const LOOK_EVERY_MS = 10_000;

type Node = { readonly address: string; readonly store: Pick<RedisStore, 'command'> };
type Log = JobOptions['log'] & { error(fields: object, message: string): void };

/**
 * Asks each Redis for its settings and its state: memory, replicas. A start refuses a Redis that may evict keys. This job finds
 * nodes of a cluster that joined later, and a Redis whose settings were changed while it ran. They are reported, not refused:
 * nothing is evicted before the memory is full, and refusing the calls of all their accounts would be worse.
 *
 * Tested by test/platform/node-watch.test.ts.
 */
export class NodeWatch extends Job {
  readonly #nodes: () => readonly Node[];
  readonly #kind: 'single' | 'cluster';
  readonly #log: Log;
  /** Null before the first look. */
  #infos: ReadonlyMap<string, NodeInfo> | null = null;
  /** The fault last reported of each node that was ever seen; null: it had none. */
  readonly #reported = new Map<string, string | null>();

  constructor(options: { nodes: () => readonly Node[]; kind: 'single' | 'cluster'; log: Log }) {
    super({
      everyMs: LOOK_EVERY_MS,
      messages: { failing: 'cannot check the redis nodes now', again: 'can check the redis nodes again' },
      log: options.log,
    });
    this.#nodes = options.nodes;
    this.#kind = options.kind;
    this.#log = options.log;
  }

  /** What each node said at the last look. A node that did not answer is missing: its own log line says that it is away. */
  get infos(): ReadonlyMap<string, NodeInfo> {
    return this.#infos ?? new Map();
  }

  protected override round(): Promise<void> {
    return this.look();
  }

  async look(): Promise<void> {
    const nodes = this.#nodes();
    const replies = await Promise.allSettled(nodes.map(({ store }) => store.command('info', [])));
    const infos = new Map<string, NodeInfo>();
    for (const [at, reply] of replies.entries()) {
      if (reply.status === 'fulfilled')
        infos.set((nodes[at] as Node).address, readNodeInfo(String(reply.value), this.#kind));
    }
    for (const [address, info] of infos) this.#report(address, info);
    this.#infos = infos;
  }

  #report(node: string, { fault, warnings }: NodeInfo): void {
    const before = this.#reported.get(node);
    if (fault !== null && fault !== before) this.#log.error({ node }, fault);
    else if (fault === null && typeof before === 'string')
      this.#log.warn({ node }, 'this redis is now configured as required');
    // The start has already logged the warnings of the nodes that existed then.
    if (before === undefined && this.#infos !== null) for (const warning of warnings) this.#log.warn({ node }, warning);
    this.#reported.set(node, fault);
  }
}
