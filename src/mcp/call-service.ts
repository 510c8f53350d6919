import { ApiError, unauthorizedError } from '../errors.ts';
import { headerOf } from '../http/request-head.ts';
import { callResult } from './call-answer.ts';
import { callRequest } from './call-request.ts';
import type { InProcessCaller } from './in-process-caller.ts';
import type { Progress } from './protocol.ts';
import { callError, fieldsOf, type ToolResult, toolResult } from './tool-result.ts';
import type { StartCall, Visit } from './visit.ts';

/** Interval of progress messages about a call, for clients that asked for them. */
const PROGRESS_MS = 5_000;

/** Nobody is there to read it. */
const LEFT = toolResult({ error: 'cancelled', message: 'The caller left. get_usage tells what the call cost.' }, true);

/**
 * The tool `call_service`: one call, made by the same exchange that serves callers of the proxy.
 *
 * Tested by test/integration/mcp-tools.test.ts.
 */
export async function callService(
  start: StartCall,
  visit: Visit,
  { cancelled, progress }: { readonly cancelled: AbortSignal; readonly progress: Progress },
): Promise<ToolResult> {
  try {
    if (visit.key === null) throw unauthorizedError();
    const request = requestOf(visit);
    const reporter = new Reporter(progress);
    try {
      const isKeyed = headerOf(request.head.headers, 'idempotency-key') !== undefined;
      const { answer, cost } = await visit.call(start, request, cancelled, (call) => reporter.report(call));
      if (answer.kind === 'left') return LEFT;
      return callResult(answer, cost, isKeyed);
    } finally {
      reporter.stop();
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return callError(fieldsOf(error), { amount: 0 });
  }
}

/** A separate function, because variables of `callService` stay in memory until the call has ended. */
function requestOf(visit: Visit): ReturnType<typeof callRequest> {
  const args = visit.arguments;
  if (args === null) throw new ApiError('invalid_request');
  visit.arguments = null;
  return callRequest(args, visit.head);
}

/** Tells the client when its call was admitted, when its response begins, and every few seconds that it is still under way. */
class Reporter {
  readonly #progress: Progress;
  readonly #begunAt = performance.now();
  #timer: NodeJS.Timeout | null = null;

  constructor(progress: Progress) {
    this.#progress = progress;
  }

  report(call: InProcessCaller): void {
    this.#timer ??= setInterval(() => this.#tell(call, `${this.#seconds()} s: `), PROGRESS_MS);
    this.#tell(call, '');
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  #tell({ status, bytes }: InProcessCaller, prefix: string): void {
    const state =
      status === 0 ? 'waiting for the service' : `the service answers with status ${status}, ${bytes} bytes so far`;
    this.#progress(prefix + state);
  }

  #seconds(): number {
    return Math.round((performance.now() - this.#begunAt) / 1_000);
  }
}
