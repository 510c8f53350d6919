import { useState } from 'preact/hooks';
import type { Schemas } from '../../api/client.ts';
import { Button, Code, Dialog, FailureNote, Note } from '../../design/index.ts';

/** A secret is shown once: here, until its owner says that it is kept. Escape does not close it. @param onClose  what comes then; may be a promise */
export function SecretShownOnce({
  made,
  onClose,
}: {
  readonly made: Pick<Schemas['CreatedKey'], 'key_id' | 'secret'>;
  readonly onClose: () => unknown;
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
      title="Keep this key"
      actions={
        <Button kind="primary" busy={busy} onClick={() => void goOn()}>
          I have kept it
        </Button>
      }
    >
      <p>
        This is the only time that the secret is shown. Whoever has it acts as this account and can spend its money. Put
        it into a password manager, or where your program reads its secrets.
      </p>
      <Code wrap label="API key" text={`${made.key_id}:${made.secret}`} />
      <Note tone="warn">
        <span>
          Programs send it as the header <code>Authorization: Bearer …</code>, never in an address.
        </span>
      </Note>
      {failure !== null && <FailureNote failure={failure} />}
    </Dialog>
  );
}
