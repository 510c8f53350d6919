import { type Losses, ON_ITS_WAY_MS } from '../losses.ts';
import { type FaultCluster, GROUPS } from './nodes.ts';

type Scene = {
  readonly cluster: FaultCluster;
  /** The shards of each group at the start of the schedule. */
  readonly shards: readonly ReadonlySet<number>[];
  readonly losses: Losses;
};

/**
 * The node that leads each group. If it changed since the last look without a fault, there was an unplanned failover: a node had too
 * little CPU for its node timeout. It may have lost something at any time since that look. A look at the end alone would miss it if a
 * planned failover leads back to the first node.
 */
export class Masters {
  /** How many failovers nobody planned. */
  unplanned = 0;
  readonly #scene: Scene;
  readonly #known: { at: number; seenMs: number }[];

  private constructor(scene: Scene, known: readonly number[]) {
    this.#scene = scene;
    this.#known = known.map((at) => ({ at, seenMs: Date.now() }));
  }

  static async look(scene: Scene): Promise<Masters> {
    const groups = Array.from({ length: GROUPS }, (_, group) => group);
    return new Masters(scene, await Promise.all(groups.map((group) => scene.cluster.masterOf(group))));
  }

  /** To be called just before a fault of the group, and at the end. @returns who leads it */
  async before(group: number): Promise<number> {
    const { losses, shards } = this.#scene;
    const known = this.#known[group] as { at: number; seenMs: number };
    const at = await this.#see(group);
    if (at === known.at) return at;
    this.unplanned++;
    losses.replaced(group);
    losses.add({
      group,
      shards: shards[group] as ReadonlySet<number>,
      fromMs: known.seenMs - ON_ITS_WAY_MS,
      toMs: Date.now(),
      why: 'a failover that nobody planned',
    });
    return at;
  }

  /** To be called when a fault of the group has ended. */
  async after(group: number, master: number): Promise<void> {
    if ((await this.#see(group)) !== master) this.#scene.losses.replaced(group);
  }

  async end(): Promise<void> {
    for (const group of this.#known.keys()) await this.before(group);
  }

  async #see(group: number): Promise<number> {
    const at = await this.#scene.cluster.masterOf(group);
    this.#known[group] = { at, seenMs: Date.now() };
    return at;
  }
}
