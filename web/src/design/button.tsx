import type { ButtonHTMLAttributes, ComponentChildren, PartialAnchorHTMLAttributes } from 'preact';

type Look = {
  readonly kind?: 'plain' | 'primary' | 'danger' | 'quiet';
  readonly small?: boolean;
  readonly children: ComponentChildren;
};

const classOf = ({ kind = 'plain', small = false }: Look): string =>
  `button${kind === 'plain' ? '' : ` button-${kind}`}${small ? ' button-small' : ''}`;

/**
 * @param busy the action is under way: the button cannot be pressed again, and tells screen readers so. It is not `disabled`, because
 *   the focus would be lost
 */
export function Button({
  kind,
  small,
  busy = false,
  disabled,
  onClick,
  children,
  ...rest
}: Look & { readonly busy?: boolean } & Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'class' | 'children'>) {
  const look = classOf({ kind, small, children } as Look);
  return (
    <button
      type="button"
      {...rest}
      class={look}
      disabled={disabled}
      aria-disabled={busy || undefined}
      aria-busy={busy}
      // Without its default a click sends no form.
      onClick={busy ? (event) => event.preventDefault() : onClick}
    >
      {children}
    </button>
  );
}

/** A link that looks like a button: it leads somewhere, and can be opened in another tab. */
export function LinkButton({
  kind,
  small,
  children,
  ...rest
}: Look & { readonly href: string } & Omit<
    PartialAnchorHTMLAttributes<HTMLAnchorElement>,
    'class' | 'children' | 'href'
  >) {
  return (
    <a {...(rest as object)} class={classOf({ kind, small, children } as Look)}>
      {children}
    </a>
  );
}
