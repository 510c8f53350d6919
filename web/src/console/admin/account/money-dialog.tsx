import { useEffect, useState } from 'preact/hooks';
import type { Schemas } from '../../../api/client.ts';
import { Button, FailureNote, Note, say } from '../../../design/index.ts';
import { Dialog, TextInput } from '../../../design/more.ts';
import { ago, moment, money } from '../../../i18n/format.ts';
import { useI18n } from '../../../i18n/i18n.tsx';
import { useResource } from '../../../resource.ts';
import { readAmount } from '../../shared/amount.ts';
import { showFirstFault } from '../../shared/first-fault.ts';
import { sentence } from '../../shared/sentence.ts';
import {
  type Draft,
  draftOf,
  type Earlier as EarlierOne,
  explain,
  isUnknown,
  lastOf,
  MONEY_ACTS,
  type MoneyAct,
  type Moved,
  newReference,
  sendMoney,
} from './money-acts.ts';

const DAY_MS = 86_400_000;

/** The API's bound on a payment, in US dollars. */
const PAYMENT = { least: 0.000001, most: 1_000_000_000 };

/**
 * Moves money of one account. The reference stays the same until the outcome is known, so that a repeat is not a second payment.
 */
export function MoneyDialog({
  act,
  account,
  preset,
  lead,
  onClose,
  onDone,
}: {
  readonly act: MoneyAct;
  readonly account: Schemas['AccountDetails'];
  readonly preset?: Partial<Draft> | undefined;
  /** The purpose of this act, instead of the general text. */
  readonly lead?: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const { language } = useI18n();
  const { title, verb, done, lead: usual } = MONEY_ACTS[act];
  const subject = { act, accountId: account.account_id, preset: preset ?? everything(act, account) };
  const [first] = useState(() => draftOf(subject));
  const last = useResource(`last ${act} of ${account.account_id}`, (signal) => lastOf(act, account.account_id, signal));
  const [amount, setAmount] = useState(first.draft.amount);
  const [reference, setReference] = useState(first.draft.reference);
  const [reason, setReason] = useState(first.draft.reason);
  const [busy, setBusy] = useState(false);
  const [isTried, setIsTried] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const [isRetry, setIsRetry] = useState(first.isRetry);
  const [before, setBefore] = useState<Moved | null>(null);
  const usd = (value: number): string => money(value, language);
  const { usd: value, fault: amountFault } = readAmount(amount, PAYMENT);
  // A payout of another amount on the same day is another payout: with the first one's reference it would be refused.
  useEffect(() => {
    if (act !== 'payout' || first.isRetry || last.data === null) return;
    const usual = newReference(act, account.account_id);
    const isSame = last.data.some((one) => one.amount === value && one.reference.startsWith(usual));
    const suggested = isSame ? usual : newReference(act, account.account_id, last.data);
    setReference((now) => (now.startsWith(usual) ? suggested : now));
  }, [last.data, value]);
  const faults = {
    amount: amountFault === null ? null : sentence(amountFault),
    reference: reference.trim() === '' ? 'A reference is needed: it makes the payment count once.' : null,
    reason: act === 'debit' && reason.trim() === '' ? 'Say why: the account reads it in its statement.' : null,
  };
  const send = async (): Promise<void> => {
    setIsTried(true);
    if (Object.values(faults).some((fault) => fault !== null)) return showFirstFault();
    setBusy(true);
    setFailure(null);
    setBefore(null);
    try {
      const draft = { amount: amount.trim(), reference: reference.trim(), reason: reason.trim() };
      const moved = await sendMoney(subject, draft);
      onDone();
      // Only somebody who did not know whether it was carried out expects to be told that it was.
      if (!moved.isNew && !isRetry) {
        setBefore(moved);
        return;
      }
      say(moved.isNew ? `${usd(value ?? 0)} ${done}.` : 'It was carried out the first time: nothing moved again.');
      onClose();
    } catch (error) {
      setFailure(error);
      if (isUnknown(error)) setIsRetry(true);
    } finally {
      setBusy(false);
    }
  };
  const explanation = failure === null ? null : explain(act, failure, usd);
  return (
    <Dialog
      title={`${title}: ${account.owner_id}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" busy={busy} onClick={() => void send()}>
            {value === null ? verb.replace(/ of$/, '') : `${verb} ${usd(value)}`}
          </Button>
        </>
      }
    >
      <p class="soft">{lead ?? usual}</p>
      {first.isRetry && (
        <Note tone="warn">
          The outcome of this payment is not known. Send it again unchanged: with the same reference it counts once.
        </Note>
      )}
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <TextInput
          label="Amount in US dollars"
          inputMode="decimal"
          autocomplete="off"
          autoFocus
          value={amount}
          error={isTried ? faults.amount : null}
          hint={hintOf(act, account, usd)}
          onInput={(event) => setAmount(event.currentTarget.value)}
        />
        <Earlier last={last.data ?? []} amount={value} reference={reference.trim()} />
        {act === 'debit' && (
          <TextInput
            label="Reason"
            maxLength={500}
            autocomplete="off"
            value={reason}
            error={isTried ? faults.reason : null}
            hint="Shown to the account in its statement."
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        )}
        <TextInput
          label="Reference"
          mono
          maxLength={200}
          autocomplete="off"
          spellcheck={false}
          value={reference}
          error={isTried ? faults.reference : null}
          hint="A payment with this reference counts once, however often it is sent."
          onInput={(event) => {
            setReference(event.currentTarget.value);
            setBefore(null);
          }}
        />
        {/* Enter in a field sends. */}
        <button type="submit" hidden aria-hidden="true" tabIndex={-1} />
      </form>
      {failure !== null && (explanation === null || isUnknown(failure)) && <FailureNote failure={failure} />}
      {explanation !== null && (
        <Note tone="warn">
          <span role="alert">{explanation}</span>
        </Note>
      )}
      {before !== null && (
        <Note tone="warn">
          This payment was made before, on {moment(before.createdAt, language)}: nothing moved again.
          {act === 'payout' && ' Make no second transfer.'} If this is another one, change the reference.
        </Note>
      )}
    </Dialog>
  );
}

/** A payout is usually the whole payable amount. */
const everything = (act: MoneyAct, { payable }: Schemas['AccountDetails']): Partial<Draft> | undefined =>
  act === 'payout' ? { amount: String(payable) } : undefined;

/** The last act, and whether this one looks like a repetition of it. */
function Earlier({
  last,
  amount,
  reference,
}: {
  readonly last: readonly EarlierOne[];
  readonly amount: number | null;
  readonly reference: string;
}) {
  const { language } = useI18n();
  const now = Date.now();
  const same = last.find((one) => one.amount === amount && now - Date.parse(one.created_at) < DAY_MS);
  const [newest] = last;
  if (newest === undefined) return null;
  const told = ({ amount: value, created_at, reference: name }: EarlierOne) => (
    <>
      {money(value, language)}, {ago(created_at, language, now)}, reference <code class="break">{name}</code>
    </>
  );
  // With the same reference it counts only once anyway.
  if (same === undefined || same.reference === reference) {
    return <p class="small soft">The last one: {told(newest)}.</p>;
  }
  return (
    <Note tone="warn">
      <span>Is this another one? One of the same amount was made already: {told(same)}.</span>
    </Note>
  );
}

function hintOf(act: MoneyAct, account: Schemas['AccountDetails'], usd: (value: number) => string): string {
  if (act === 'payout') return `Payable: ${usd(account.payable)}.`;
  return act === 'debit' ? `The balance is ${usd(account.balance)}.` : `The balance is ${usd(account.balance)} now.`;
}
