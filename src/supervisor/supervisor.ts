import type { Log } from '../observability/log.ts';
import { labelled, type MetricFamily, type Metrics, renderFamilies, type Source } from '../observability/metrics.ts';
import type { Slot } from './slot.ts';

type SupervisorOptions = {
  /** The processes that share the port. */
  readonly workers: readonly Slot[];
  /** The process that stores the workers' usage; null when the writer runs elsewhere. */
  readonly writer: Slot | null;
  /** The supervisor's own metrics. */
  readonly metrics: Metrics;
  readonly log: Log;
};

/** A process could not be started: it ended, or was killed because it took too long, before it was ready. Its own log says why. */
export class StartFailure extends Error {}

/** Keeps the processes of one gateway running: starts them, restarts those that end by themselves, and stops them in order. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #slots: readonly Slot[];
  /** How many replacements of all processes are requested, including the one under way; at most 2. */
  #rollsWanted = 0;
  #stopping = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#slots = options.writer === null ? options.workers : [options.writer, ...options.workers];
    options.metrics.add(sources(this.#slots));
  }

  /** Resolves when all processes are ready. Rejects as soon as one cannot be started, because a gateway needs all of them. */
  async start(): Promise<void> {
    const [first, ...others] = this.#slots;
    // The first process starts alone: it migrates the database, and a fault of the configuration is reported only once.
    await started(first as Slot);
    await Promise.all(others.map(started));
  }

  /** Stops the writer last, so that it stores in Postgres what the workers settle while they stop. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#options.workers.map((slot) => slot.stop()));
    await this.#options.writer?.stop();
  }

  kill(): void {
    this.#stopping = true;
    for (const slot of this.#slots) slot.kill();
  }

  /**
   * Replaces all processes one after the other: a new process must be ready before the old one ends. If it is called again before
   * it has finished, it then replaces all of them once more, because the code on disk may have changed again. Never rejects.
   */
  async roll(): Promise<void> {
    this.#rollsWanted = Math.min(this.#rollsWanted + 1, 2);
    if (this.#rollsWanted > 1) return;
    for (; this.#rollsWanted > 0; this.#rollsWanted--) await this.#rollOnce();
  }

  async #rollOnce(): Promise<void> {
    const { log } = this.#options;
    log.info({}, 'replacing all processes');
    for (const slot of this.#slots) {
      if (this.#stopping) return;
      try {
        await slot.replace();
      } catch (error) {
        // If one replacement does not start, those of the other slots would not start either.
        if (!this.#stopping)
          log.error(
            { process: slot.name, err: error },
            'process could not be replaced; the remaining processes are kept too',
          );
        return;
      }
    }
    log.info({}, 'replaced all processes');
  }

  /** One page with the metrics of all processes; the label `worker` tells them apart. */
  async renderMetrics(): Promise<string> {
    const { metrics } = this.#options;
    const pages: (readonly MetricFamily[])[] = [labelled(await metrics.families(), 'worker', 'supervisor')];
    const answers = await Promise.all(this.#slots.map(async (slot) => [slot.name, await slot.metrics()] as const));
    for (const [name, families] of answers) if (families !== null) pages.push(labelled(families, 'worker', name));
    return renderFamilies(pages.flat());
  }
}

async function started(slot: Slot): Promise<void> {
  try {
    await slot.start();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartFailure(`process ${slot.name} could not be started: ${reason}`, { cause: error });
  }
}

function sources(slots: readonly Slot[]): Source[] {
  const each = (read: (slot: Slot) => number) => () => new Map(slots.map((slot) => [slot.name, read(slot)]));
  return [
    {
      name: 'tollgate_worker_up',
      help: 'Whether the process is ready',
      type: 'gauge',
      label: 'worker',
      read: each((slot) => (slot.isFilled ? 1 : 0)),
    },
    {
      name: 'tollgate_worker_restarts_total',
      help: 'How often the process was started again after it had ended by itself, failed attempts included',
      type: 'counter',
      label: 'worker',
      read: each((slot) => slot.restarts),
    },
  ];
}
