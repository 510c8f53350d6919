import { Destination, parseEndpoint } from '../upstream/index.js';
/** How long a service may take to answer, name and connection included. A service that takes longer than this is not of use to callers. */
const ANSWER_MS = 5_000;
/**
 * Asks a service by the client that carries calls, so with the same address policy: the address that was checked is the one that is
 * dialled, and no redirect is followed. Only the response head is read (at most `maxHeadBytes` of the client); then the connection is
 * closed. The listing's `upstream_headers` are not sent.
 *
 * @param stopping  ends the question
 * @returns the status, or null if there was no HTTP answer in time
 */
export function ask(client, question, stopping) {
    const { serviceId, endpoint, method, path } = question;
    const { origin, basePath } = parseEndpoint(endpoint);
    return new Promise((resolve) => {
        const end = (status) => {
            clearTimeout(timer);
            stopping.removeEventListener('abort', stop);
            call.destroy();
            resolve(status);
        };
        // The client calls nothing back before `dispatch` has returned.
        const call = client.dispatch({
            destination: new Destination(origin, `watch ${serviceId} ${origin.key}`),
            method,
            path: basePath + path || '/',
            account: serviceId,
            headerLines: 'user-agent: tollgate-watch\r\naccept: */*\r\n',
            bodyLength: 0,
            headTimeoutMs: ANSWER_MS,
            idleBodyTimeoutMs: ANSWER_MS,
        }, {
            onHead: ({ status }) => end(status),
            onData: () => { },
            onEnd: () => { },
            onError: () => end(null),
            onWritable: () => { },
        });
        const stop = () => end(null);
        const timer = setTimeout(stop, stopping.aborted ? 0 : ANSWER_MS);
        stopping.addEventListener('abort', stop);
    });
}
//# sourceMappingURL=ask.js.map