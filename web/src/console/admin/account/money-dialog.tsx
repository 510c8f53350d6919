import { useState } from 'preact/hooks';
import type { Schemas } from '../../../api/client.ts';
import { Button, Dialog, FailureNote, Note, say, TextInput } from '../../../design/index.ts';
import { money } from '../../../i18n/format.ts';
import { useI18n } from '../../../i18n/i18n.tsx';
import { readAmount } from '../../shared/amount.ts';
import { sentence } from '../../shared/sentence.ts';
import { draftOf, explain, MONEY_ACTS, type MoneyAct, sendMoney } from './money-acts.ts';

/** As the API bounds a payment, in US dollars. */
const PAYMENT = { least: 0.000001, most: 1_000_000_000 };

/** Moves money of one account. The reference stays the same until the outcome is known, so a repeat is no second payment. */
export function MoneyDialog({
  act,
  account,
  onClose,
  onDone,
}: {
  readonly act: MoneyAct;
  readonly account: Schemas['AccountDetails'];
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const { language } = useI18n();
  const { title, verb, done, lead } = MONEY_ACTS[act];
  const [first] = useState(() => draftOf(act, account.account_id));
  const [amount, setAmount] = useState(first.draft.amount);
  const [reference, setReference] = useState(first.draft.reference);
  const [reason, setReason] = useState(first.draft.reason);
  const [busy, setBusy] = useState(false);
  const [isTried, setIsTried] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const usd = (value: number): string => money(value, language);
  const { usd: value, fault: amountFault } = readAmount(amount, PAYMENT);
  const faults = {
    amount: amountFault === null ? null : sentence(amountFault),
    reference: reference.trim() === '' ? 'A reference is needed: it makes the payment count once.' : null,
    reason: act === 'debit' && reason.trim() === '' ? 'Say why: the account reads it in its statement.' : null,
  };
  const send = async (): Promise<void> => {
    setIsTried(true);
    if (Object.values(faults).some((fault) => fault !== null)) return;
    setBusy(true);
    setFailure(null);
    try {
      const draft = { amount: amount.trim(), reference: reference.trim(), reason: reason.trim() };
      const outcome = await sendMoney(act, account.account_id, draft);
      say(
        outcome === 'done'
          ? `${usd(value ?? 0)} ${done}.`
          : 'This reference had been used before: nothing moved again.',
      );
      onDone();
      onClose();
    } catch (error) {
      setFailure(error);
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
      <p class="soft">{lead}</p>
      {first.isRetry && (
        <Note tone="warn">
          The outcome of this payment is not known. Send it again as it stands: with the same reference it counts once.
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
          onInput={(event) => setReference(event.currentTarget.value)}
        />
        {/* Enter in a field sends. */}
        <button type="submit" hidden aria-hidden="true" tabIndex={-1} />
      </form>
      {failure !== null && <FailureNote failure={failure} />}
      {explanation !== null && <Note tone="warn">{explanation}</Note>}
    </Dialog>
  );
}

function hintOf(act: MoneyAct, account: Schemas['AccountDetails'], usd: (value: number) => string): string {
  if (act === 'payout') return `Payable: ${usd(account.payable)}.`;
  return act === 'debit' ? `The wallet has ${usd(account.balance)}.` : `The wallet has ${usd(account.balance)} now.`;
}
