import type { ComponentChildren } from 'preact';
import { ApiFailure } from '../api/client.ts';
import { Button } from './button.tsx';

/** What stands where nothing is yet: why, and what to do next. */
export function Empty({
  title,
  children,
  action,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
  readonly action?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <h3>{title}</h3>
      {children !== undefined && <p>{children}</p>}
      {action}
    </div>
  );
}

export function Note({
  tone = 'info',
  children,
}: {
  readonly tone?: 'info' | 'good' | 'warn' | 'bad';
  readonly children: ComponentChildren;
}) {
  return <div class={tone === 'info' ? 'note' : `note note-${tone}`}>{children}</div>;
}

/** What happened, and what can be done. @param retry  asks again; the button is shown only with it */
export function FailureNote({ failure, retry }: { readonly failure: unknown; readonly retry?: () => void }) {
  const known = failure instanceof ApiFailure ? failure : null;
  const message = known?.message ?? `Something in this page failed: ${String(failure)}`;
  return (
    <div class="note note-bad" role="alert">
      <span class="break">{message}</span>
      {known?.status === 401 && <span class="soft">The key may have been revoked. Sign out, and in again.</span>}
      {known?.status === 429 && known.retryAfter !== null && (
        <span class="soft">The limit of requests is used up. There is room again in {known.retryAfter} s.</span>
      )}
      {known !== null && known.requestId !== null && known.status >= 500 && (
        <span class="faint small">Request {known.requestId}</span>
      )}
      {retry !== undefined && (
        <Button small onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** The shape of what is on its way. @param lines  of text */
export function Skeleton({ lines = 3 }: { readonly lines?: number }) {
  return (
    <div class="stack-tight" aria-busy="true">
      <span class="visually-hidden">Loading</span>
      {Array.from({ length: lines }, (_, i) => (
        <div key={i} class="skeleton" aria-hidden="true">
          &nbsp;
        </div>
      ))}
    </div>
  );
}
