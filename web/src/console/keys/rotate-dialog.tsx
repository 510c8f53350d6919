import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Button, FailureNote } from '../../design/index.ts';
import { Dialog, Select } from '../../design/more.ts';
import { api, replaceSecret } from '../../session.ts';

const OVERLAPS = [
  ['3600', 'for one hour'],
  ['600', 'for ten minutes'],
  ['86400', 'for one day'],
  ['0', 'not at all: it ends now'],
] as const;

/** Gives a key a new secret. @param isOwn it is the key of this tab's session, which continues with the new secret */
export function RotateDialog({
  of,
  isOwn,
  onClose,
  onMade,
}: {
  readonly of: Schemas['Key'];
  readonly isOwn: boolean;
  readonly onClose: () => void;
  readonly onMade: (made: Schemas['RotatedKey']) => void;
}) {
  const [overlap, setOverlap] = useState<string>(OVERLAPS[0][0]);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const rotate = async (): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      const made = await dataOf(
        api.value.POST('/api/v1/keys/{key_id}/rotate', {
          params: { path: { key_id: of.key_id } },
          body: { overlap_seconds: Number(overlap) },
        }),
      );
      // The new secret must be shown, even if nobody is signed in with it.
      await replaceSecret(made.key_id, made.secret).catch(() => {});
      onMade(made);
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Rotate a key"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" busy={busy} onClick={() => void rotate()}>
            Make a new secret
          </Button>
        </>
      }
    >
      <p>
        <code class="break">{of.key_id}</code> gets a new secret under the same id. It is shown once.
        {isOwn &&
          ' You are signed in with it: this browser goes on with the new secret, and others are signed out when the present one ends.'}
      </p>
      <Select
        label="The present secret stays valid"
        hint="Long enough to put the new one into all programs. A secret from an earlier rotation ends now."
        value={overlap}
        onChange={(event) => setOverlap(event.currentTarget.value)}
        options={OVERLAPS}
      />
      {failure !== null && <FailureNote failure={failure} />}
    </Dialog>
  );
}
