import type { Metrics } from '../observability/metrics.ts';
import type { FromChild, ToChild } from './messages.ts';

/** Why a supervised process has to end. */
export type StopReason = 'asked' | 'replaced' | 'SIGTERM' | 'supervisor gone';

/**
 * The supervisor, as a process that it started sees it.
 *
 * A terminal's Ctrl-C and an init system's SIGTERM reach all processes of the group at once, but the writer has to go
 * last: so only the supervisor acts on signals, and tells everybody when their time has come. But a worker that alone
 * gets a SIGTERM drains, and is started again.
 */
export class SupervisorLink {
  readonly #channel: NodeJS.Process;
  #metrics: Metrics | null = null;
  /** Resolves when this process has to end. */
  readonly stopped: Promise<StopReason>;

  /** @param obeysSigterm whether this process may drain by itself */
  constructor(channel: NodeJS.Process, { obeysSigterm }: { readonly obeysSigterm: boolean }) {
    if (channel.send === undefined) throw new Error('only a supervisor starts supervised processes');
    this.#channel = channel;
    for (const signal of ['SIGINT', 'SIGHUP'] as const) channel.on(signal, () => {});
    this.stopped = new Promise((resolve) => {
      // It died before we listened.
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

  /** From now on it serves. */
  ready(metrics: Metrics): void {
    this.#metrics = metrics;
    this.#tell({ type: 'ready' });
  }

  async #sendMetrics(request: number): Promise<void> {
    if (this.#metrics === null) return;
    this.#tell({ type: 'metrics', request, families: await this.#metrics.families() });
  }

  #tell(message: FromChild): void {
    // Without a supervisor this process is about to end.
    if (this.#channel.connected) this.#channel.send?.(message, undefined, {}, () => {});
  }
}
