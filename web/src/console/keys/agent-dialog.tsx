import { useId, useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Button, FailureNote } from '../../design/index.ts';
import { Dialog } from '../../design/more.ts';
import { api, session } from '../../session.ts';
import { showFirstFault } from '../shared/first-fault.ts';
import { EMPTY_DRAFT, faultsOf, newKeyOf } from './draft.ts';
import { BudgetFields, LabelField, MoreLimits } from './key-fields.tsx';
import { useCalled } from './use-usage.ts';

/** Needed here, because the other button makes a key without one. */
const NEEDED = 'A budget is needed. A key may also be made without one: see "New key without a budget".';

/** Makes a key below the one of this tab. */
export function AgentDialog({
  onClose,
  onMade,
}: {
  readonly onClose: () => void;
  readonly onMade: (made: Schemas['CreatedKey']) => void;
}) {
  const [draft, setDraft] = useState(EMPTY_DRAFT);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const form = useId();
  const [isTried, setTried] = useState(false);
  // A key below a child key is bounded by that one's budget.
  const isNeeded = session.value?.me.parent_key_id === undefined;
  const isMissing = isTried && isNeeded && draft.amount.trim() === '';
  const faults = { ...faultsOf(draft), ...(isMissing ? { amount: NEEDED } : {}) };
  const called = useCalled();
  const fields = {
    called,
    ifEmpty: 'as the key above',
    draft,
    faults,
    set: (change: object) => setDraft((before) => ({ ...before, ...change })),
  };
  const create = async (): Promise<void> => {
    setTried(true);
    if (Object.keys(faultsOf(draft)).length > 0 || (isNeeded && draft.amount.trim() === '')) return showFirstFault();
    setBusy(true);
    setFailure(null);
    try {
      onMade(await dataOf(api.value.POST('/api/v1/keys', { body: newKeyOf(draft) })));
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="New key with a budget"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" form={form} busy={busy}>
            Make the key
          </Button>
        </>
      }
    >
      <p class="soft">
        It spends from the same money as your key, within its limits and those of the keys above it. It sees its own
        calls, and can make keys below it.
      </p>
      <form
        id={form}
        class="stack"
        // The browser's own words would not say how to make a key without a budget.
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (!busy) void create();
        }}
      >
        <LabelField {...fields} />
        <BudgetFields {...fields} isNeeded={isNeeded} />
        <details class="key-more">
          <summary>More limits</summary>
          <div class="stack">
            <MoreLimits {...fields} />
          </div>
        </details>
      </form>
      {failure !== null && <FailureNote failure={failure} />}
    </Dialog>
  );
}
