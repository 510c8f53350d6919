import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Button } from './button.tsx';
import { FailureNote } from './states.tsx';
import { raiseToasts } from './toasts.tsx';

const FIRST = '.dialog-body :is(input, select, textarea):not(:disabled), .dialog-foot button';

/**
 * A modal dialog of the browser: it keeps the focus inside, and Escape closes it. Without `onClose` it is closed by its own buttons
 * only.
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
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog?.showModal();
    // The browser begins with the ✕. A form begins with its first field, and a question with its first answer: "Cancel".
    if (onClose !== undefined) dialog?.querySelector<HTMLElement>(FIRST)?.focus({ preventScroll: true });
    raiseToasts();
    return () => {
      dialog?.close();
      // The dialog has left the document by now, and the browser gives the focus back to nobody.
      const isLost = document.activeElement === null || document.activeElement === document.body;
      if (isLost && before instanceof HTMLElement) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class="dialog"
      aria-labelledby={id}
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
 * Asks before something that cannot be taken back. While it is under way the dialog stays, and says what went wrong if it fails.
 *
 * @param confirm  what the button says: the act itself ("Revoke key"), never "OK"
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
