import type { Metrics } from '../observability/metrics.ts';
import type { FromChild, ToChild } from './messages.ts';

/** Why a process has to end. */
export type StopReason = 'asked' | 'replaced' | 'SIGTERM' | 'supervisor gone';

/**
 * The supervisor, seen from a process that it started.
 *
 * A terminal's Ctrl-C and an init system's SIGTERM reach all processes of the group at once, but the writer has to end last. So
 * only the supervisor acts on these signals, and tells each process when to end. There is one exception: a worker that gets a
 * SIGTERM drains and ends. If only the worker got the SIGTERM, the supervisor starts it again.
 */
export class SupervisorLink {
  readonly #channel: NodeJS.Process;
  #metrics: Metrics | null = null;
  /** Resolves when this process has to end. */
  readonly stopped: Promise<StopReason>;

  /** @param obeysSigterm whether a SIGTERM makes this process drain and end; true for workers */
  constructor(channel: NodeJS.Process, { obeysSigterm }: { readonly obeysSigterm: boolean }) {
    if (channel.send === undefined) throw new Error('a supervised process must be started by a supervisor');
    this.#channel = channel;
    for (const signal of ['SIGINT', 'SIGHUP'] as const) channel.on(signal, () => {});
    this.stopped = new Promise((resolve) => {
      // The supervisor died before this process listened for its end.
      if (!channel.connected) resolve('supervisor gone');
      channel.on('SIGTERM', () => {
        if (obeysSigterm) resolve('SIGTERM');
      });
      channel.on('disconnect', () => resolve('supervisor gone'));
      channel.on('message', (message: ToChild) => {
        if (message.type === 'stop') resolve(message.replaced ? 'replaced' : 'asked');
        else void this.#sendMetrics(message.request);
      });
    });
  }

  /** Tells the supervisor that this process serves from now on. */
  ready(metrics: Metrics): void {
    this.#metrics = metrics;
    this.#tell({ type: 'ready' });
  }

  async #sendMetrics(request: number): Promise<void> {
    if (this.#metrics === null) return;
    this.#tell({ type: 'metrics', request, families: await this.#metrics.families() });
  }

  #tell(message: FromChild): void {
    // If the supervisor is gone, this process is about to end, and nobody needs the message.
    if (this.#channel.connected) this.#channel.send?.(message, undefined, {}, () => {});
  }
}
