import { Destination, parseEndpoint, type UpstreamClient, type UpstreamErrorCode } from '../upstream/index.ts';

/**
 * How long a service may take to answer, name look-up and connection included. A service that takes longer is of no use to callers.
 */
export const ANSWER_MS = 5_000;

/** A status, or the reason why there is none. */
export type Answer =
  | { readonly status: number; readonly failure: null }
  | { readonly status: null; readonly failure: UpstreamErrorCode };

type Question = {
  /** An owner for the pool: questions use none of the connections that belong to the listing's calls. */
  readonly serviceId: string;
  readonly endpoint: string;
  readonly method: 'GET' | 'HEAD';
  /** The part after the endpoint's path: '' or '/…'. */
  readonly path: string;
};

/**
 * Asks a service, using the client that carries calls. So the same address policy applies: the address that was checked is the one
 * that is dialled, and no redirect is followed. Only the response head is read (at most `maxHeadBytes` of the client); then the
 * connection is closed. The listing's `upstream_headers` are not sent.
 *
 * @param stopping  ends the question
 * @returns null if it was ended
 */
export function ask(client: UpstreamClient, question: Question, stopping: AbortSignal): Promise<Answer | null> {
  const { serviceId, endpoint, method, path } = question;
  const { origin, basePath } = parseEndpoint(endpoint);
  return new Promise((resolve) => {
    const end = (answer: Answer | null): void => {
      clearTimeout(timer);
      stopping.removeEventListener('abort', stop);
      call.destroy();
      resolve(answer);
    };
    // The client calls no handler before `dispatch` has returned.
    const call = client.dispatch(
      {
        destination: new Destination(origin, `watch ${serviceId} ${origin.key}`),
        method,
        path: basePath + path || '/',
        account: serviceId,
        headerLines: 'user-agent: tollgate-watch\r\naccept: */*\r\n',
        bodyLength: 0,
        headTimeoutMs: ANSWER_MS,
        idleBodyTimeoutMs: ANSWER_MS,
      },
      {
        onHead: ({ status }) => end({ status, failure: null }),
        onData: () => {},
        onEnd: () => {},
        onError: ({ code }) => end({ status: null, failure: code }),
        onWritable: () => {},
      },
    );
    const stop = (): void => end(null);
    const late = (): void => end(stopping.aborted ? null : { status: null, failure: 'head_timeout' });
    const timer = setTimeout(late, stopping.aborted ? 0 : ANSWER_MS);
    stopping.addEventListener('abort', stop);
  });
}
