import { useEffect, useState } from 'preact/hooks';
import { useHref } from '../address.tsx';
import { ApiFailure, type Schemas } from '../api/client.ts';
import { Button, Empty, LinkButton } from '../design/index.ts';
import { useFirstData } from '../first-data.ts';
import { type I18n, useI18n } from '../i18n/i18n.tsx';

type ErrorBody = Schemas['Error'];

/** The failure that a page came with, if any. */
export function useFirstFailure(): ApiFailure | null {
  const body = useFirstData<ErrorBody>('failure');
  const [failure] = useState(() =>
    body === null ? null : new ApiFailure(String(body.error), String(body.message), Number(body.status), null),
  );
  return failure;
}

/** What happened and what can be done, in the reader's language; details of a bad request are in the gateway's own words. */
function wordsOf(failure: unknown, { t }: I18n): string {
  if (!(failure instanceof ApiFailure)) return t('failure.unavailable');
  const { status, retryAfter, message } = failure;
  if (status === 429) {
    return retryAfter === null ? t('failure.rateLimitedSoon') : t('failure.rateLimited', { count: retryAfter });
  }
  if (status === 0) return t('failure.network');
  if (status === 400) return t('failure.invalid', { reason: message });
  return t('failure.unavailable');
}

/** A failed search. After a rate limit, it is repeated when the gateway said that it may be. */
export function SearchFailure({ failure, retry }: { readonly failure: unknown; readonly retry?: () => void }) {
  const i18n = useI18n();
  const waitSeconds = failure instanceof ApiFailure && failure.status === 429 ? failure.retryAfter : null;
  useEffect(() => {
    if (waitSeconds === null || retry === undefined) return;
    const timer = setTimeout(retry, Math.max(1, waitSeconds) * 1_000);
    return () => clearTimeout(timer);
    // A new failure begins a new wait, even of the same length.
  }, [failure]);
  const isFinal = failure instanceof ApiFailure && failure.status === 400;
  return (
    <div class="note note-bad" role="alert">
      <span class="break">{wordsOf(failure, i18n)}</span>
      {retry !== undefined && !isFinal && (
        <Button small onClick={retry}>
          {i18n.t('failure.retry')}
        </Button>
      )}
    </div>
  );
}

/** Shown instead of a page that could not be made. */
export function FailurePage() {
  const i18n = useI18n();
  const href = useHref();
  const failure = useFirstFailure();
  return (
    <div class="page">
      <Empty
        isPage
        title={i18n.t('failure.title')}
        action={
          <LinkButton kind="primary" href={href('/')}>
            {i18n.t('notFound.action')}
          </LinkButton>
        }
      >
        {wordsOf(failure, i18n)}
      </Empty>
    </div>
  );
}
