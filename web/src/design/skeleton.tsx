import type { ComponentChildren } from 'preact';
import { useI18n } from '../i18n/i18n.tsx';

/** The rough shape of a page: figures above charts, a list with its filters, or texts in cards. */
export type Shape = 'figures' | 'list' | 'card';

/** What a screen reader says while only placeholders are shown. */
function Waiting({ children, class: name }: { readonly children: ComponentChildren; readonly class: string }) {
  const { t } = useI18n();
  return (
    <div class={name} aria-busy="true">
      <span class="visually-hidden">{t('page.loading')}</span>
      {children}
    </div>
  );
}

const Line = () => (
  <div class="skeleton" aria-hidden="true">
    &nbsp;
  </div>
);

/** A placeholder for content that is loading. @param lines of text */
export function Skeleton({ lines = 3 }: { readonly lines?: number }) {
  return (
    <Waiting class="stack-tight skeleton-lines">
      {Array.from({ length: lines }, (_, i) => (
        <Line key={i} />
      ))}
    </Waiting>
  );
}

/** A placeholder for a row of figures, of the same height. */
export function SkeletonStats({ count = 4 }: { readonly count?: number }) {
  return (
    <div class="stats" aria-hidden="true">
      {Array.from({ length: count }, (_, i) => (
        <div key={i} class="stat skeleton-stat">
          <span class="stat-label skeleton">&nbsp;</span>
          <span class="stat-value skeleton">&nbsp;</span>
          <span class="stat-hint skeleton">&nbsp;</span>
        </div>
      ))}
    </div>
  );
}

/** A placeholder for rows of a table, as high as rows with two lines of text. */
export function SkeletonRows({ count = 8 }: { readonly count?: number }) {
  return (
    <Waiting class="skeleton-rows">
      {Array.from({ length: count }, (_, i) => (
        <div key={i} class="skeleton-row" aria-hidden="true">
          <span class="skeleton">&nbsp;</span>
          <span class="skeleton">&nbsp;</span>
          <span class="skeleton">&nbsp;</span>
        </div>
      ))}
    </Waiting>
  );
}

/** A placeholder for a whole page below its heading. */
export function SkeletonPage({ shape }: { readonly shape: Shape }) {
  if (shape === 'list') {
    return (
      <section class="card">
        <div class="skeleton-filters" aria-hidden="true">
          <span class="skeleton">&nbsp;</span>
          <span class="skeleton">&nbsp;</span>
        </div>
        <SkeletonRows />
      </section>
    );
  }
  return (
    <>
      {shape === 'figures' && <SkeletonStats />}
      <SkeletonCard lines={9} />
      <SkeletonCard lines={4} />
    </>
  );
}

/** A placeholder for a card with a heading. @param lines of text below it */
export function SkeletonCard({ lines }: { readonly lines: number }) {
  return (
    <section class="card">
      <div class="card-head" aria-hidden="true">
        <span class="skeleton skeleton-title">&nbsp;</span>
      </div>
      <div class="card-body">
        <Skeleton lines={lines} />
      </div>
    </section>
  );
}
