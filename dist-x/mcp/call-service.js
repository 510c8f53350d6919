import { ApiError, unauthorizedError } from '../errors.js';
import { callResult } from './call-answer.js';
import { callRequest } from './call-request.js';
import { callError, fieldsOf, toolResult } from './tool-result.js';
/** How often a client that asked for it is told how a call goes on. */
const PROGRESS_MS = 5_000;
/** Nobody is there to read it. */
const LEFT = toolResult({ error: 'cancelled', message: 'The caller left. get_usage tells what the call cost.' }, true);
/**
 * The tool `call_service`: one call, by the same exchange that serves callers of the proxy.
 *
 * Tested by test/integration/mcp-tools.test.ts.
 */
export async function callService(start, visit, { cancelled, progress }) {
    try {
        if (visit.key === null)
            throw unauthorizedError();
        const request = requestOf(visit);
        const reporter = new Reporter(progress);
        try {
            const { answer, isRefunded } = await visit.call(start, request, cancelled, (call) => reporter.report(call));
            if (answer.kind === 'left')
                return LEFT;
            return callResult(answer, isRefunded);
        }
        finally {
            reporter.stop();
        }
    }
    catch (error) {
        if (!(error instanceof ApiError))
            throw error;
        return callError(fieldsOf(error), { amount: 0 });
    }
}
/** A function of its own, because what `callService` has in a variable is kept until the call has ended. */
function requestOf(visit) {
    const args = visit.arguments;
    if (args === null)
        throw new ApiError('invalid_request');
    visit.arguments = null;
    return callRequest(args, visit.head);
}
/** Tells the client when its call was admitted and when its response begins, and every few seconds that it goes on. */
class Reporter {
    #progress;
    #begunAt = performance.now();
    #timer = null;
    constructor(progress) {
        this.#progress = progress;
    }
    report(call) {
        this.#timer ??= setInterval(() => this.#tell(call, `${this.#seconds()} s: `), PROGRESS_MS);
        this.#tell(call, '');
    }
    stop() {
        if (this.#timer !== null)
            clearInterval(this.#timer);
    }
    #tell({ status, bytes }, prefix) {
        const state = status === 0 ? 'waiting for the service' : `the service answers with status ${status}, ${bytes} bytes so far`;
        this.#progress(prefix + state);
    }
    #seconds() {
        return Math.round((performance.now() - this.#begunAt) / 1_000);
    }
}
//# sourceMappingURL=call-service.js.map