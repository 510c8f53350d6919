import { useEffect, useState } from 'preact/hooks';
import { useI18n } from '../i18n/i18n.tsx';
import { Button } from './button.tsx';

/** Copies a text. If the browser does not allow it, the button says so: the text can still be selected by hand. */
export function CopyButton({ text, label }: { readonly text: string; readonly label?: string }) {
  const { t } = useI18n();
  const [said, setSaid] = useState<'page.copied' | 'page.copyRefused' | null>(null);
  useEffect(() => {
    if (said === null) return;
    const timer = setTimeout(() => setSaid(null), 2_000);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async (): Promise<void> => {
    try {
      // Browsers give pages without TLS no access to the clipboard.
      await navigator.clipboard.writeText(text);
      setSaid('page.copied');
    } catch {
      setSaid('page.copyRefused');
    }
  };
  return (
    <span class="copy" aria-live="polite">
      <Button kind="quiet" small onClick={() => void copy()}>
        {said === null ? (label ?? t('service.copy')) : t(said)}
      </Button>
    </span>
  );
}

/** Text of programs or services: always text, never HTML. @param wrap long lines are wrapped, not scrolled */
export function Code({
  text,
  wrap = false,
  label,
}: {
  readonly text: string;
  readonly wrap?: boolean;
  /** A name for screen readers. */
  readonly label: string;
}) {
  return (
    <div class={wrap ? 'code code-wrap' : 'code'}>
      <section aria-label={label}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
        <pre tabIndex={0}>
          <code>{text}</code>
        </pre>
      </section>
      <CopyButton text={text} />
    </div>
  );
}
