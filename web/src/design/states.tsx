import type { ComponentChildren } from 'preact';
import { ApiFailure } from '../api/client.ts';
import { type I18n, useI18n } from '../i18n/i18n.tsx';
import { Button } from './button.tsx';

/** Shown where there is nothing yet: why, and what to do next. */
export function Empty({
  title,
  children,
  action,
  isPage = false,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
  readonly action?: ComponentChildren;
  /** Whether it is the whole page, so that its title is the main heading. */
  readonly isPage?: boolean;
}) {
  const Heading = isPage ? 'h1' : 'h2';
  return (
    <div class="empty">
      <Heading class="empty-title">{title}</Heading>
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

/** What happened, and what can be done. @param retry asks again; without it there is no button */
export function FailureNote({ failure, retry }: { readonly failure: unknown; readonly retry?: () => void }) {
  const i18n = useI18n();
  const known = failure instanceof ApiFailure ? failure : null;
  const message = known?.message ?? `Something in this page failed: ${String(failure)}`;
  const isLimit = i18n.language === 'en' && known?.status === 429 && known.retryAfter !== null;
  const translated = known === null || i18n.language === 'en' ? null : meaningOf(known, i18n);
  return (
    <div class="note note-bad" role="alert">
      {!isLimit && <span class="break">{translated ?? message}</span>}
      {translated === null && known?.status === 401 && (
        <span class="soft">The key may have been revoked. Sign out, and sign in again.</span>
      )}
      {isLimit && (
        <span>
          Too many requests within a minute. Try again in {known.retryAfter}{' '}
          {known.retryAfter === 1 ? 'second' : 'seconds'}.
        </span>
      )}
      {known !== null && known.requestId !== null && known.status >= 500 && (
        <code class="faint small">{known.requestId}</code>
      )}
      {/* The same question would be refused again. */}
      {retry !== undefined && known?.status !== 400 && (
        <Button small onClick={retry}>
          {i18n.t('failure.retry')}
        </Button>
      )}
    </div>
  );
}

/** The gateway speaks English. For readers of other languages: what its status means, if that says enough. */
function meaningOf({ status }: ApiFailure, { t }: I18n): string | null {
  if (status === 0) return t('failure.network');
  if (status === 404) return t('notFound.text');
  if (status === 429) return t('failure.rateLimitedSoon');
  return status >= 500 ? t('failure.unavailable') : null;
}
