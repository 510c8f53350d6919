import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Button, FailureNote } from '../../design/index.ts';
import { Dialog, Select } from '../../design/more.ts';
import { api } from '../../session.ts';
import { EMPTY_DRAFT } from './draft.ts';
import { LabelField } from './key-fields.tsx';

type Role = Schemas['CreatedKey']['role'];

const MAY: Readonly<Record<Role, string>> = {
  buyer: 'buyer: calls services and sees what they cost',
  provider: 'provider: also lists services and sees what they earn',
  admin: 'admin: also runs the marketplace',
};

/** Makes another key without a parent. @param roles the roles it may have, lowest first */
export function CreateDialog({
  roles,
  onClose,
  onMade,
}: {
  readonly roles: readonly Role[];
  readonly onClose: () => void;
  readonly onMade: (made: Schemas['CreatedKey']) => void;
}) {
  const [role, setRole] = useState<Role>(roles[0] ?? 'buyer');
  const [draft, setDraft] = useState(EMPTY_DRAFT);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const create = async (): Promise<void> => {
    setBusy(true);
    setFailure(null);
    const label = draft.label.trim();
    try {
      onMade(await dataOf(api.value.POST('/api/v1/keys', { body: { role, ...(label === '' ? {} : { label }) } })));
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="New key without a budget"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" busy={busy} onClick={() => void create()}>
            Make the key
          </Button>
        </>
      }
    >
      <p class="soft">
        A key like yours: without a budget, so that only the balance of the account bounds what it can spend. A program
        that may spend less needs a <em>new key with a budget</em>.
      </p>
      <LabelField draft={draft} set={(change) => setDraft((before) => ({ ...before, ...change }))} />
      {roles.length > 1 && (
        <Select
          label="Role"
          hint="Choose the lowest role that is enough. A program that only calls services needs a buyer key."
          value={role}
          onChange={(event) => setRole(roles.find((name) => name === event.currentTarget.value) ?? role)}
          options={roles.map((name) => [name, MAY[name]] as const)}
        />
      )}
      {failure !== null && <FailureNote failure={failure} />}
    </Dialog>
  );
}
