import { useState } from 'preact/hooks';
import { useAddress } from '../../address.tsx';
import { ApiFailure, dataOf } from '../../api/client.ts';
import { Button, FailureNote } from '../../design/index.ts';
import { TextInput } from '../../design/more.ts';
import { api } from '../../session.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Somebody who complains names something: a label, or the id of an account, a key or a call. This finds it. */
export function Find() {
  const address = useAddress();
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const find = async (form: HTMLFormElement): Promise<void> => {
    const text = String(new FormData(form).get('find') ?? '').trim();
    if (text === '') return;
    setBusy(true);
    setFailure(null);
    try {
      address.go(await addressOf(text));
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <search class="finder stack-tight">
      <form
        class="find"
        onSubmit={(event) => {
          event.preventDefault();
          void find(event.currentTarget);
        }}
      >
        <TextInput
          label="Find an account or a call"
          name="find"
          type="search"
          placeholder="Label, account, key or usage id"
          autocomplete="off"
          spellcheck={false}
        />
        <Button type="submit" busy={busy}>
          Find
        </Button>
      </form>
      {failure !== null && <FailureNote failure={failure} />}
    </search>
  );
}

const WHOLE = 'A call and a key are found by their whole ids; lists show their last characters.';

/** The page of the thing that this text names; the list of accounts if it names several. Throws if it names none. */
async function addressOf(text: string): Promise<string> {
  const id = text.toLowerCase();
  if (await isCall(id)) return `/console/calls/${id}`;
  const query = { q: text, limit: 2 };
  const { accounts } = await dataOf(api.value.GET('/api/v1/admin/accounts', { params: { query } }));
  const [only, another] = accounts;
  if (only === undefined)
    throw new ApiFailure('nothing', `There is no account, key or call "${text}". ${WHOLE}`, 404, null);
  if (only !== undefined && another === undefined) return `/console/accounts/${only.account_id}`;
  return `/console/accounts?q=${encodeURIComponent(text)}`;
}

/** Whether this is the id of a recorded call. */
export async function isCall(usageId: string): Promise<boolean> {
  if (!UUID.test(usageId)) return false;
  try {
    await dataOf(api.value.GET('/api/v1/usage/{usage_id}', { params: { path: { usage_id: usageId } } }));
    return true;
  } catch (failure) {
    if (failure instanceof ApiFailure && failure.status === 404) return false;
    throw failure;
  }
}
