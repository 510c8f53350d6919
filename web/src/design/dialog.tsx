import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { ACTS } from '../lost-focus.ts';
import { Button } from './button.tsx';
import { FailureNote } from './states.tsx';
import { raiseToasts } from './toasts.tsx';

const FIRST = '.dialog-body :is(input, select, textarea):not(:disabled), .dialog-foot button';

/** What Enter in a field does: nothing that cannot be undone, and no answer to a question about leaving the dialog. */
const ACT = '.dialog-foot:not(:has(.dialog-question)) > .button-primary';
const TYPED = /^(text|search|number|password|url|email|tel|date|datetime-local)$/;

/**
 * A modal dialog of the browser: it keeps the focus inside, and Escape closes it. Without `onClose` only its own buttons close it.
 */
export function Dialog({
  title,
  onClose,
  actions,
  children,
}: {
  readonly title: string;
  readonly onClose?: () => void;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const isFilled = useRef(false);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    const wasAct = before?.matches(ACTS);
    dialog?.showModal();
    // The browser would focus the ✕. A form focuses its first field, and a question its first answer: "Cancel".
    if (onClose !== undefined) dialog?.querySelector<HTMLElement>(FIRST)?.focus({ preventScroll: true });
    raiseToasts();
    return () => {
      dialog?.close();
      // The dialog has been removed from the document by now, so the browser restores no focus.
      const isLost = document.activeElement === null || document.activeElement === document.body;
      // A button that has become another act is not for a second Enter: `keepFocus` finds what comes before it.
      const isHarmless = wasAct || !before?.matches(ACTS);
      if (isLost && isHarmless && before instanceof HTMLElement) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class="dialog"
      aria-labelledby={id}
      onInput={() => {
        isFilled.current = true;
      }}
      // As in a form, once somebody has begun to fill it in: a second Enter on the button that opened the dialog sends nothing.
      onKeyDown={(event) => {
        const { target, key, isComposing, keyCode } = event;
        // Safari says by the code alone that this Enter ends a composition.
        if (key !== 'Enter' || isComposing || keyCode === 229 || event.defaultPrevented) return;
        if (!(target instanceof HTMLInputElement) || !TYPED.test(target.type)) return;
        if (isFilled.current && target.form !== null) return;
        event.preventDefault();
        if (isFilled.current) ref.current?.querySelector<HTMLButtonElement>(ACT)?.click();
      }}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      // Chromium closes at a second Escape without asking.
      onClose={() => {
        if (ref.current?.isConnected && !ref.current.open) {
          if (onClose === undefined) ref.current.showModal();
          else onClose();
        }
      }}
    >
      <div class="dialog-head">
        <h2 id={id}>{title}</h2>
        {onClose !== undefined && (
          <Button kind="quiet" small onClick={onClose} aria-label="Close">
            ✕
          </Button>
        )}
      </div>
      <div class="dialog-body stack">{children}</div>
      {actions !== undefined && <div class="dialog-foot">{actions}</div>}
    </dialog>
  );
}

/**
 * Asks before an action that cannot be undone. The dialog stays while the action is under way, and says what went wrong if it
 * fails.
 *
 * @param confirm the text of the button: the action itself ("Revoke key"), never "OK"
 */
export function ConfirmDialog({
  title,
  confirm,
  danger = true,
  act,
  onClose,
  children,
}: {
  readonly title: string;
  readonly confirm: string;
  readonly danger?: boolean;
  readonly act: () => Promise<unknown>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const run = async (): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      await act();
      onClose();
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind={danger ? 'danger' : 'primary'} busy={busy} onClick={() => void run()}>
            {confirm}
          </Button>
        </>
      }
    >
      {children}
      {failure !== null && <FailureNote failure={failure} />}
    </Dialog>
  );
}
