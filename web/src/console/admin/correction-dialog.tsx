import { useState } from 'preact/hooks';
import { dataOf } from '../../api/client.ts';
import { Button, FailureNote, Note, say } from '../../design/index.ts';
import { Dialog, Select, TextInput } from '../../design/more.ts';
import { count, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { api } from '../../session.ts';
import { isUnknown, newReference } from './account/money-acts.ts';
import type { Reconciliation } from './run-reconciliation.ts';

export type Drift = Reconciliation['shards'][number]['drifts'][number];
type Believe = 'postgres' | 'redis';

const STORES: readonly (readonly [Believe, string])[] = [
  ['postgres', 'Postgres: change the wallet'],
  ['redis', 'Redis: change the balance'],
];

/** Ends the drift of one account. Repeats with the same reference count once, so it can be sent again until there is an answer. */
export function CorrectionDialog({
  drift,
  onClose,
  onDone,
}: {
  readonly drift: Drift;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const [believe, setBelieve] = useState<Believe>('postgres');
  const [reason, setReason] = useState('');
  const [reference, setReference] = useState(() => newReference('correction', drift.account_id));
  const [busy, setBusy] = useState(false);
  const [isTried, setIsTried] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const faults = {
    reason: reason.trim() === '' ? 'Say why: it is kept with the correction.' : null,
    reference: reference.trim() === '' ? 'A reference is needed: it makes the correction count once.' : null,
  };
  const send = async (): Promise<void> => {
    setIsTried(true);
    if (busy || faults.reason !== null || faults.reference !== null) return;
    setBusy(true);
    setFailure(null);
    try {
      const params = { path: { account_id: drift.account_id } };
      const body = { believe, reason: reason.trim(), reference: reference.trim() };
      await dataOf(api.value.POST('/api/v1/admin/reconciliation/{account_id}', { params, body }));
      say('The drift is ended.');
      onClose();
      onDone();
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`End the drift of ${drift.owner_id || 'this account'}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" busy={busy} onClick={() => void send()}>
            {believe === 'postgres' ? 'Change the wallet' : 'Change the balance'}
          </Button>
        </>
      }
    >
      <p class="soft">
        First find out why: did somebody change Redis or Postgres by hand, was a usage event rejected, was Postgres
        restored to an earlier point? Calls may run meanwhile.
      </p>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <Select
          label="Which store is right?"
          options={STORES}
          value={believe}
          hint={<Follows drift={drift} believe={believe} />}
          onChange={(event) => setBelieve(event.currentTarget.value as Believe)}
        />
        <TextInput
          label="Reason"
          maxLength={500}
          autocomplete="off"
          autoFocus
          value={reason}
          error={isTried ? faults.reason : null}
          hint={believe === 'redis' ? 'Shown to the account in its statement.' : 'Kept with the repair.'}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
        <TextInput
          label="Reference"
          mono
          maxLength={200}
          autocomplete="off"
          spellcheck={false}
          value={reference}
          error={isTried ? faults.reference : null}
          hint="A correction with this reference counts once, however often it is sent."
          onInput={(event) => setReference(event.currentTarget.value)}
        />
        {/* Enter in a field sends. */}
        <button type="submit" hidden aria-hidden="true" tabIndex={-1} />
      </form>
      {failure !== null && <FailureNote failure={failure} />}
      {failure !== null && isUnknown(failure) && (
        <Note tone="warn">
          Nobody knows yet whether it was made. Send it again with the same reference: it counts once.
        </Note>
      )}
    </Dialog>
  );
}

/** What the decision changes, in one or two sentences. */
function Follows({ drift, believe }: { readonly drift: Drift; readonly believe: Believe }) {
  const { language } = useI18n();
  const amount = money(Math.abs(drift.drift), language);
  const services = `${count(drift.free_calls.length, language)} service${drift.free_calls.length === 1 ? '' : 's'}`;
  const isMore = drift.drift > 0;
  const ofMoney =
    believe === 'postgres'
      ? `${isMore ? 'Takes' : 'Puts'} ${amount} ${isMore ? 'out of' : 'into'} the wallet. The balance in Postgres stays.`
      : `${isMore ? 'Adds' : 'Takes'} ${amount} ${isMore ? 'to' : 'from'} the account's balance in Postgres, against the platform's cash. The wallet stays.`;
  return (
    <>
      {drift.drift !== 0 && ofMoney}
      {drift.free_calls.length > 0 &&
        ` Free calls used of ${services} are counted as ${believe === 'postgres' ? 'Postgres' : 'the wallet'} counts them.`}
      {drift.holds_of_stored_calls > 0 &&
        (believe === 'postgres'
          ? ' Holds of stored calls are removed.'
          : ' This is refused while Redis has holds of stored calls.')}
    </>
  );
}
