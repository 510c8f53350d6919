import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Button, Dialog, FailureNote, Select } from '../../design/index.ts';
import { api } from '../../session.ts';

type Role = Schemas['CreatedKey']['role'];

const MAY: Readonly<Record<Role, string>> = {
  buyer: 'buyer: calls services and sees what they cost',
  provider: 'provider: also lists services and sees what they earn',
  admin: 'admin: also runs the marketplace',
};

/** Makes another key of this account. @param roles  which it may have, the lowest first */
export function CreateDialog({
  roles,
  owner,
  onClose,
  onMade,
}: {
  readonly roles: readonly Role[];
  readonly owner: string;
  readonly onClose: () => void;
  readonly onMade: (made: Schemas['CreatedKey']) => void;
}) {
  const [role, setRole] = useState<Role>(roles[0] ?? 'buyer');
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const create = async (): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      onMade(await dataOf(api.value.POST('/api/v1/keys', { body: { owner_id: owner, role } })));
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Create a key"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" busy={busy} onClick={() => void create()}>
            Create key
          </Button>
        </>
      }
    >
      <p class="soft">
        The key belongs to this account, and only the balance of the account bounds what it can spend. A program that
        may spend less needs an account of its own, with little money in it.
      </p>
      <p class="soft">Its calls are its own: to see them, use the key in this console.</p>
      <Select
        label="Role"
        hint="Choose the lowest role that is enough. A program that only calls services needs a buyer key."
        value={role}
        onChange={(event) => setRole(roles.find((name) => name === event.currentTarget.value) ?? role)}
        options={roles.map((name) => [name, MAY[name]] as const)}
      />
      {failure !== null && <FailureNote failure={failure} />}
    </Dialog>
  );
}
