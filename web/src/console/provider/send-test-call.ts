import { session } from '../../session.ts';

/** What has come of a test call until now. */
export type Answer = {
  readonly status: number | null;
  readonly statusText: string;
  readonly usageId: string | null;
  readonly text: string;
  readonly isCut: boolean;
  readonly ms: number;
  readonly done: boolean;
  readonly failure: string | null;
};

type Call = {
  readonly serviceId: string;
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  readonly signal: AbortSignal;
};

/** Maximum characters that are shown; the rest is read by nobody. */
const MAX_TEXT = 100_000;
const NOTHING: Answer = {
  ...{ status: null, statusText: '', usageId: null, text: '', isCut: false, ms: 0, done: false, failure: null },
};

/** Makes the call, and tells of each piece as it comes. Whatever the service sends is text. Never throws. */
export async function sendTestCall(call: Call, tell: (answer: Answer) => void): Promise<void> {
  const begun = performance.now();
  let answer = NOTHING;
  const say = (change: Partial<Answer>): void => {
    answer = { ...answer, ...change, ms: performance.now() - begun };
    tell(answer);
  };
  say({});
  try {
    const response = await fetch(`/api/v1/proxy/${call.serviceId}${call.path}`, {
      method: call.method,
      headers: [
        ...call.headers.map(([name, value]): [string, string] => [name, value]),
        ['Authorization', `Bearer ${session.value?.key ?? ''}`],
      ],
      ...(call.method === 'GET' || call.body === '' ? {} : { body: call.body }),
      credentials: 'omit',
      cache: 'no-store',
      referrerPolicy: 'no-referrer',
      // A page of ours must not follow a service to wherever it points.
      redirect: 'manual',
      signal: call.signal,
    });
    if (response.type === 'opaqueredirect') {
      say({ done: true, failure: 'The service answered with a redirect, which this page does not follow.' });
      return;
    }
    say({
      status: response.status,
      statusText: response.statusText,
      usageId: response.headers.get('X-ACF-Usage-Id'),
    });
    await readText(response, say);
    say({ done: true });
  } catch (error) {
    const stopped = call.signal.aborted;
    const failure = answer.status === null ? 'No answer came.' : 'The answer broke off.';
    say({ done: true, failure: stopped ? 'You stopped it.' : `${failure} ${String(error)}` });
  }
}

async function readText(response: Response, say: (change: Partial<Answer>) => void): Promise<void> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  const decoder = new TextDecoder();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    text += done ? decoder.decode() : decoder.decode(value, { stream: true });
    if (text.length > MAX_TEXT) {
      say({ text: text.slice(0, MAX_TEXT), isCut: true });
      await reader.cancel();
      return;
    }
    say({ text });
    if (done) return;
  }
}

/** `Name: value` on each line. */
export function readHeaders(text: string): {
  readonly headers: readonly (readonly [string, string])[];
  readonly fault: string | null;
} {
  const headers: (readonly [string, string])[] = [];
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const at = line.indexOf(':');
    const name = line.slice(0, Math.max(at, 0)).trim();
    const value = line.slice(at + 1).trim();
    if (name.toLowerCase() === 'authorization') return { headers, fault: 'Authorization carries your key here.' };
    try {
      new Headers([[name, value]]);
    } catch {
      return { headers, fault: `“${line.trim().slice(0, 40)}” is no header: write Name: value.` };
    }
    headers.push([name, value]);
  }
  return { headers, fault: null };
}
