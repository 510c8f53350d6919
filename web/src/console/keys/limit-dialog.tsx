import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Button, Dialog, FailureNote, TextInput } from '../../design/index.ts';
import { api } from '../../session.ts';

/** Sets the rate limit of a key. For admins. */
export function LimitDialog({
  of,
  onClose,
  onDone,
}: {
  readonly of: Schemas['Key'];
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const [text, setText] = useState(String(of.rate_limit));
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  // The operator decides how much it may be at most. The API's refusal says it.
  const limit = /^\d{1,7}$/.test(text.trim()) ? Number(text) : 0;
  const isGood = limit >= 1;
  const save = async (): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      const params = { path: { key_id: of.key_id } };
      await dataOf(api.value.PATCH('/api/v1/keys/{key_id}', { params, body: { rate_limit: limit } }));
      onDone();
      onClose();
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Limit of a key"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" busy={busy} disabled={!isGood} onClick={() => void save()}>
            Set limit
          </Button>
        </>
      }
    >
      <p>
        How many requests <code class="break">{of.key_id}</code> may send a minute. It counts from the next request on.
      </p>
      <TextInput
        label="Requests a minute"
        inputMode="numeric"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        error={isGood ? null : 'A whole number of at least 1.'}
      />
      {failure !== null && <FailureNote failure={failure} />}
    </Dialog>
  );
}
