import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Schemas } from '../../api/client.ts';
import { Button, FailureNote, Note } from '../../design/index.ts';
import { Code, Dialog } from '../../design/more.ts';

/**
 * Shows a secret once, until its owner says that it is stored. Escape does not close it.
 *
 * @param label   what the secret is, for screen readers
 * @param onClose called when the owner says so; may return a promise
 */
function ShownOnce({
  title,
  label,
  secret,
  advice,
  onClose,
  children,
}: {
  readonly title: string;
  readonly label: string;
  readonly secret: string;
  readonly advice: ComponentChildren;
  readonly onClose: () => unknown;
  readonly children: ComponentChildren;
}) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const goOn = async (): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      await onClose();
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={title}
      actions={
        <Button kind="primary" busy={busy} onClick={() => void goOn()}>
          I have kept it
        </Button>
      }
    >
      <p>{children}</p>
      <Code wrap label={label} text={secret} />
      <Note tone="warn">
        <span>{advice}</span>
      </Note>
      {failure !== null && <FailureNote failure={failure} />}
    </Dialog>
  );
}

/** A new key, or a new secret of a key. @param isChild a child key, whose limits bound what it can do */
export const KeyShownOnce = ({
  made,
  isChild = false,
  onClose,
}: {
  readonly made: Pick<Schemas['CreatedKey'], 'key_id' | 'secret'>;
  readonly isChild?: boolean;
  readonly onClose: () => unknown;
}) => (
  <ShownOnce
    title="Keep this key"
    label="API key"
    secret={`${made.key_id}:${made.secret}`}
    onClose={onClose}
    advice={
      <>
        Programs send it as the header <code>Authorization: Bearer …</code>, never in an address.
      </>
    }
  >
    This is the only time that the secret is shown. Anyone who has it{' '}
    {isChild
      ? 'can spend money of this account, within the limits of the key.'
      : 'acts as this account and can spend its money.'}{' '}
    Put it into a password manager, or where your program reads its secrets.
  </ShownOnce>
);

/** The secret with which a service checks signatures. */
export const SigningSecretShownOnce = ({
  secret,
  onClose,
}: {
  readonly secret: string;
  readonly onClose: () => unknown;
}) => (
  <ShownOnce
    title="Keep this signing secret"
    label="Signing secret"
    secret={secret}
    onClose={onClose}
    advice="Keep it where the service runs, and nowhere else."
  >
    This is the only time that it is shown. Your service checks the signature of each call with it, so that it can tell
    calls of this gateway from all others. The <a href="/docs">API reference</a> says how.
  </ShownOnce>
);
