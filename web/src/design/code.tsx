import { useState } from 'preact/hooks';
import { Button } from './button.tsx';

/** Copies a text. Where the browser does not allow it, the button says so: the text can still be selected by hand. */
export function CopyButton({
  text,
  label = 'Copy',
  copied = 'Copied',
}: {
  readonly text: string;
  readonly label?: string;
  /** What the button says for a moment after that. */
  readonly copied?: string;
}) {
  const [said, setSaid] = useState<string | null>(null);
  const copy = async (): Promise<void> => {
    setSaid(
      await navigator.clipboard.writeText(text).then(
        () => copied,
        () => 'Not allowed',
      ),
    );
    setTimeout(() => setSaid(null), 2_000);
  };
  return (
    <span class="copy" aria-live="polite">
      <Button kind="quiet" small onClick={() => void copy()}>
        {said ?? label}
      </Button>
    </span>
  );
}

/** Text of programs, or of services: always text, never HTML. @param wrap  long lines are broken, not scrolled */
export function Code({
  text,
  wrap = false,
  label,
  copyLabel,
  copiedLabel,
}: {
  readonly text: string;
  readonly wrap?: boolean;
  /** What it is, for screen readers. */
  readonly label: string;
  readonly copyLabel?: string;
  readonly copiedLabel?: string;
}) {
  return (
    <div class={wrap ? 'code code-wrap' : 'code'}>
      <section aria-label={label}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
        <pre tabIndex={0}>
          <code>{text}</code>
        </pre>
      </section>
      <CopyButton
        text={text}
        {...(copyLabel === undefined ? {} : { label: copyLabel })}
        {...(copiedLabel === undefined ? {} : { copied: copiedLabel })}
      />
    </div>
  );
}
