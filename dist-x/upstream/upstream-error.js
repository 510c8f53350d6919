export class UpstreamError extends Error {
    name = 'UpstreamError';
    code;
    /** Whether `onHead` had been called: the caller's response may have begun. */
    headReceived;
    /** Whether at least one byte of the request was given to a socket: the upstream may have acted on it. */
    requestStarted;
    constructor(failure, headReceived, requestStarted) {
        super(failure.message, failure.cause === undefined ? undefined : { cause: failure.cause });
        this.code = failure.code;
        this.headReceived = headReceived;
        this.requestStarted = requestStarted;
    }
}
/** A listing's endpoint URL cannot be used. The message says what is wrong with the URL. */
export class EndpointError extends Error {
    name = 'EndpointError';
}
/**
 * A handler that throws is a programming error. Its call is given up, and the exception is thrown again in a microtask, to reach
 * the process as 'uncaughtException'. If it went on through a socket's event, it could leave other calls in a broken state.
 */
export function surface(error) {
    queueMicrotask(() => {
        throw error;
    });
}
//# sourceMappingURL=upstream-error.js.map