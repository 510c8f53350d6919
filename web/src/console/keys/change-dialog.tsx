import { useId, useState } from 'preact/hooks';
import { dataOf } from '../../api/client.ts';
import { Button, FailureNote } from '../../design/index.ts';
import { Dialog } from '../../design/more.ts';
import { api, session } from '../../session.ts';
import { changeOf, draftOf, faultsOf } from './draft.ts';
import { BudgetFields, LabelField, MoreLimits, RateField } from './key-fields.tsx';
import type { Key } from './tree.ts';
import { useCalled } from './use-usage.ts';

/** The limits of a key that somebody may change. `rate`: only the rate limit, for a key without other limits. */
export type Changeable = 'label' | 'rate' | 'limits';

/** Changes the label and the limits of a key. */
export function ChangeDialog({
  of,
  may,
  onClose,
  onDone,
}: {
  readonly of: Key;
  readonly may: Changeable;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const [before] = useState(() => draftOf(of));
  const [draft, setDraft] = useState(before);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const form = useId();
  const faults = faultsOf(draft);
  const isGood = Object.keys(faults).length === 0;
  const change = isGood ? changeOf(before, draft) : null;
  const called = useCalled();
  const fields = {
    // An operator changes keys of other accounts.
    called: session.value?.me.role === 'admin' ? [] : called,
    ifEmpty: 'as it is',
    draft,
    faults,
    set: (part: object) => setDraft((last) => ({ ...last, ...part })),
  };
  const save = async (): Promise<void> => {
    if (change === null || busy) return;
    setBusy(true);
    setFailure(null);
    try {
      const params = { path: { key_id: of.key_id } };
      await dataOf(api.value.PATCH('/api/v1/keys/{key_id}', { params, body: change }));
      onDone();
      onClose();
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Change a key"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" form={form} busy={busy} disabled={change === null}>
            Save changes
          </Button>
        </>
      }
    >
      <p class="soft">
        <code class="break">{of.key_id}</code>
        {may === 'label'
          ? '. Only its label can be changed with the key of this tab.'
          : '. What you change counts within a second.'}
      </p>
      <form
        id={form}
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <LabelField {...fields} />
        {may === 'rate' && <RateField {...fields} />}
        {may === 'limits' && (
          <>
            <BudgetFields {...fields} isGiven={of.budget !== undefined} />
            <MoreLimits {...fields} />
          </>
        )}
      </form>
      {failure !== null && <FailureNote failure={failure} />}
    </Dialog>
  );
}
