import { useRef, useState } from 'preact/hooks';
import type { Schemas } from '../../api/client.ts';
import { type CallRequest, type CallState, send } from '../../calls/send.ts';
import { STATUS_TEXTS } from '../../calls/status-texts.ts';
import { Badge, Button, Note } from '../../design/index.ts';
import { Card, Code, Select, TextArea, TextInput } from '../../design/more.ts';
import { bytes, duration } from '../../i18n/format.ts';
import { session } from '../../session.ts';
import { readHeaders } from './header-lines.ts';
import { EN } from './service-words.tsx';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** Calls the provider's own service through the gateway, as a buyer would. */
export function TestCall({ service }: { readonly service: Schemas['Service'] }) {
  const start = startOf(service);
  const [method, setMethod] = useState(start.method);
  const [path, setPath] = useState(start.path);
  // No errors are shown before the user has done something.
  const [isTouched, setTouched] = useState(false);
  const [headers, setHeaders] = useState(start.headers);
  const [body, setBody] = useState(start.body);
  const [answer, setAnswer] = useState<CallState | null>(null);
  const running = useRef<AbortController | null>(null);
  const headersRead = readHeaders(headers);
  const pathFault = pathFaultOf(service.id, path);
  const isRunning = answer?.phase === 'waiting' || answer?.phase === 'receiving';
  const call = async (): Promise<void> => {
    setTouched(true);
    if (pathFault !== null || headersRead.fault !== null) return;
    const controller = new AbortController();
    running.current = controller;
    const credential = session.value?.credential;
    const shown = (await credential?.now().catch(() => null)) ?? '';
    const requestWith = (bearer: string): CallRequest => ({
      method,
      target: `/api/v1/proxy/${service.id}${path}`,
      headers: { ...headersRead.headers, Authorization: `Bearer ${bearer}` },
      body: method === 'GET' || body === '' ? null : body,
    });
    const renewed = credential?.renewed ?? null;
    const again = renewed === null ? null : async () => requestWith(await renewed(shown));
    await send(requestWith(shown), again, setAnswer, controller.signal);
  };
  return (
    <Card title="Test call">
      <form
        class="stack"
        method="post"
        onSubmit={(event) => {
          event.preventDefault();
          void call();
        }}
      >
        <p class="small soft">Calls of your own services are free, also while paused, and are in no statistics.</p>
        <div class="test-line">
          <Select
            label="Method"
            value={method}
            options={METHODS.map((name) => [name, name] as const)}
            onChange={(event) => setMethod(event.currentTarget.value)}
          />
          <TextInput
            label="Path"
            mono
            autocomplete="off"
            spellcheck={false}
            value={path}
            error={isTouched ? pathFault : null}
            onInput={(event) => {
              setTouched(true);
              setPath(event.currentTarget.value);
            }}
          />
        </div>
        <details class="more-fields" open={start.body !== ''}>
          <summary>Headers and body</summary>
          <div class="stack">
            <TextArea
              label="Headers"
              mono
              rows={2}
              spellcheck={false}
              placeholder="Content-Type: application/json"
              hint="One on each line."
              error={headersRead.fault}
              value={headers}
              onInput={(event) => setHeaders(event.currentTarget.value)}
            />
            <TextArea
              label="Body"
              mono
              rows={3}
              spellcheck={false}
              disabled={method === 'GET'}
              value={body}
              onInput={(event) => setBody(event.currentTarget.value)}
            />
          </div>
        </details>
        <div class="row">
          <Button kind="primary" type="submit" busy={isRunning}>
            Make the call
          </Button>
          {isRunning && <Button onClick={() => running.current?.abort()}>Stop</Button>}
        </div>
      </form>
      {answer !== null && <AnswerShown answer={answer} service={service} />}
      {service.status === 'active' && (
        <p class="small soft test-more">
          Buyers try it at <a href={`/services/${service.id}`}>its public page</a>.
        </p>
      )}
    </Card>
  );
}

type Start = { readonly method: string; readonly path: string; readonly headers: string; readonly body: string };

/** The most likely first call: the first operation with its example, or the tools of an MCP server. */
function startOf({ protocol, operations = [] }: Schemas['Service']): Start {
  if (protocol === 'mcp') {
    const headers = 'Content-Type: application/json\nAccept: application/json, text/event-stream';
    return { method: 'POST', path: '', headers, body: '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}' };
  }
  const first = operations.find((operation) => operation.path !== undefined);
  if (first === undefined) return { method: 'GET', path: '/', headers: '', body: '' };
  const query = new URLSearchParams(
    Object.entries(first.example?.query ?? {}).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  const body = first.example?.body;
  return {
    method: first.method ?? 'GET',
    path: `${(first.path ?? '/').replace(/\*$/, '')}${query === '' ? '' : `?${query}`}`,
    headers: body === undefined ? '' : 'Content-Type: application/json',
    body: body === undefined ? '' : JSON.stringify(body, null, 2),
  };
}

/** A browser resolves dot segments before it sends: such a path would be another page of the gateway. */
function pathFaultOf(id: string, path: string): string | null {
  // An MCP server lives at the endpoint itself.
  if (path === '') return null;
  if (!path.startsWith('/')) return 'Must begin with a slash.';
  const [name] = /\{\w+\}/.exec(path.split('?')[0] ?? '') ?? [];
  if (name !== undefined) return `Put a value in place of ${name}.`;
  const base = `/api/v1/proxy/${id}/`;
  return new URL(base.slice(0, -1) + path, location.origin).pathname.startsWith(base)
    ? null
    : 'Must stay below the service.';
}

/** Statuses by which a service refuses credentials, or has no quota left for them. */
const DENIALS: readonly number[] = [401, 407, 429];

const addsCredentials = ({ upstream_headers: headers, upstream_query: query, signed }: Schemas['Service']): boolean =>
  (headers ?? []).length > 0 || (query ?? []).length > 0 || signed === true;

const PHASES = {
  waiting: 'Waiting for the answer…',
  receiving: 'Receiving…',
  done: null,
  cancelled: 'You stopped the call.',
  broken: 'The answer broke off.',
} as const;

function AnswerShown({
  answer: { phase, ms, response, body },
  service,
}: {
  readonly answer: CallState;
  readonly service: Schemas['Service'];
}) {
  const status = response?.status ?? null;
  const said = phase === 'broken' && response === null ? 'No answer came.' : PHASES[phase];
  return (
    <div class="stack-tight test-answer" role="status">
      {said !== null && <Note tone={phase === 'broken' ? 'bad' : 'info'}>{said}</Note>}
      {status === 0 && <Note>The service answered with a redirect, which this page does not follow.</Note>}
      {response !== null && status !== null && status !== 0 && (
        <div class="row">
          <Badge tone={status < 400 ? 'good' : 'bad'}>
            {status} {STATUS_TEXTS[status] ?? ''}
          </Badge>
          {phase === 'done' && <span class="small soft">{duration(ms, EN)}</span>}
          {response.usageId !== null && (
            <a class="small" href={`/console/calls/${response.usageId}`} title={response.usageId}>
              This call
            </a>
          )}
        </div>
      )}
      {status !== null && status >= 500 && (
        <p class="small soft">For a buyer this would be a failure: free, and counted against your quality.</p>
      )}
      {status !== null && DENIALS.includes(status) && addsCredentials(service) && (
        <Note tone="bad">
          Your credentials were refused: those that the listing adds. Buyers pay nothing for this, and it counts against
          your quality.
        </Note>
      )}
      {(status === 401 || status === 403) && !addsCredentials(service) && (
        <p class="small soft">Buyers pay for a 4xx. If your service expects credentials, let the listing add them.</p>
      )}
      {body?.kind === 'binary' && <p class="small soft">The body is not text: {bytes(body.bytes, EN)}.</p>}
      {body !== null && body.text !== '' && <Code wrap label="Body of the answer" text={body.text} />}
      {body?.isCut === true && <p class="small soft">The rest is not shown.</p>}
    </div>
  );
}
