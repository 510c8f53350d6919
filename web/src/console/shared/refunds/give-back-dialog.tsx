import { useState } from 'preact/hooks';
import { ApiFailure, type Schemas } from '../../../api/client.ts';
import { Button, FailureNote, Note, say } from '../../../design/index.ts';
import { Dialog, TextInput } from '../../../design/more.ts';
import { moment, money } from '../../../i18n/format.ts';
import { useI18n } from '../../../i18n/i18n.tsx';
import { readAmount } from '../amount.ts';
import { showFirstFault } from '../first-fault.ts';
import { sentence } from '../sentence.ts';
import { draftOf, type Given, giveBack, isUnknown } from './give-back.ts';
import { leftOf, sharesOf } from './shares.ts';

export type Giver = {
  readonly isOperator: boolean;
  /** Earnings of the provider that are not paid out yet; null: not known. */
  readonly payable: number | null;
};

/**
 * Gives a call back, whole or in part. The reference stays the same until the outcome is known, so that a repeat gives nothing back
 * twice.
 */
export function GiveBackDialog({
  call,
  giver,
  onClose,
  onDone,
}: {
  readonly call: Schemas['Call'];
  readonly giver: Giver;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const { language } = useI18n();
  const [first] = useState(() => draftOf(call));
  const [draft, setDraft] = useState(first.draft);
  const [busy, setBusy] = useState(false);
  const [isTried, setIsTried] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const [isRetry, setIsRetry] = useState(first.isRetry);
  const [before, setBefore] = useState<Given | null>(null);
  const usd = (value: number): string => money(value, language);
  const left = leftOf(call);
  const { usd: value, fault } = readAmount(draft.amount, { least: 0.000001, most: left });
  const faults = {
    amount: fault === null ? null : sentence(fault),
    reason:
      draft.reason.trim() === ''
        ? `Say why: the buyer ${giver.isOperator ? 'and the provider read' : 'reads'} it.`
        : null,
    reference: draft.reference.trim() === '' ? 'Needed, so that the money is given back only once.' : null,
  };
  const change = (changes: Partial<typeof draft>): void => {
    setDraft({ ...draft, ...changes });
    setBefore(null);
    setFailure(null);
  };
  const send = async (): Promise<void> => {
    setIsTried(true);
    if (Object.values(faults).some((each) => each !== null)) return showFirstFault();
    setBusy(true);
    setFailure(null);
    setBefore(null);
    try {
      const { amount, reason, reference } = draft;
      const sent = { amount: amount.trim(), reason: reason.trim(), reference: reference.trim() };
      const given = await giveBack(call.usage_id, sent);
      onDone();
      // Only somebody who did not know whether it was carried out expects to be told that it was.
      if (!given.isNew && !isRetry) return setBefore(given);
      say(given.isNew ? toldOf(given.refund, giver, usd) : 'It was given back the first time: nothing moved again.');
      onClose();
    } catch (error) {
      setFailure(error);
      if (isUnknown(error)) setIsRetry(true);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Give this call back"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" busy={busy} onClick={() => void send()}>
            {value === null ? 'Give back' : `Give back ${usd(value)}`}
          </Button>
        </>
      }
    >
      <p class="soft">
        {giver.isOperator
          ? 'The buyer gets it at once. The platform gives its fee back, and the provider the rest, out of its earnings.'
          : 'The buyer gets it at once, out of your earnings. The platform gives its fee of it back.'}
      </p>
      {first.isRetry && (
        <Note tone="warn">
          It is not known whether this was carried out. Send it again unchanged: with the same reference it counts once.
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
          value={draft.amount}
          error={isTried ? faults.amount : null}
          hint={`${usd(left)} of ${usd(call.amount)} can be given back. A part of it is possible, too.`}
          onInput={(event) => change({ amount: event.currentTarget.value })}
        />
        {value !== null && (
          <Shares call={call} given={value} giver={giver} isRefused={failure !== null && !isUnknown(failure)} />
        )}
        <TextInput
          label="Reason"
          maxLength={500}
          autocomplete="off"
          value={draft.reason}
          error={isTried ? faults.reason : null}
          hint="The buyer reads it in the statement and with the call."
          onInput={(event) => change({ reason: event.currentTarget.value })}
        />
        <TextInput
          label="Reference"
          mono
          maxLength={200}
          autocomplete="off"
          spellcheck={false}
          value={draft.reference}
          error={isTried ? faults.reference : null}
          hint="Needed, so that the money is given back only once. The buyer sees it."
          onInput={(event) => change({ reference: event.currentTarget.value })}
        />
        {/* Enter in a field sends. */}
        <button type="submit" hidden aria-hidden="true" tabIndex={-1} />
      </form>
      {failure !== null && <FailureNote failure={failure} />}
      {failure !== null && <Explanation failure={failure} />}
      {before !== null && (
        <Note tone="warn">
          {usd(before.refund.amount)} was given back with this reference before, on{' '}
          {moment(before.refund.created_at, language)}: nothing moved again. If this is another one, change the
          reference.
        </Note>
      )}
    </Dialog>
  );
}

/** Who pays the refund. An operator may also give back what the earnings do not cover: the platform pays it. */
function Shares({
  call,
  given,
  giver,
  isRefused,
}: {
  readonly call: Schemas['Call'];
  readonly given: number;
  readonly giver: Giver;
  /** The answer says why. */
  readonly isRefused: boolean;
}) {
  const { language } = useI18n();
  const usd = (value: number): string => money(value, language);
  const { fee, provider, uncovered } = sharesOf(call, given, giver.payable);
  const whose = giver.isOperator ? "the provider's" : 'your';
  return (
    <>
      <p class="small soft">
        {usd(provider)} out of {whose} earnings, {usd(fee)} of the fee.
      </p>
      {uncovered > 0 && !isRefused && (
        <Note tone="warn">
          {giver.isOperator
            ? `The platform pays ${usd(uncovered)} of it: the provider's earnings do not cover more. They are negative then, and no payout is possible until calls have earned it.`
            : (giver.payable ?? 0) > 0
              ? `Your earnings do not cover it: ${usd(giver.payable ?? 0)} is payable now. Give a part of it back, or ask the operator.`
              : 'Nothing of your earnings is payable now, so only the operator can give it back.'}
        </Note>
      )}
    </>
  );
}

/** What was done, in one line. */
function toldOf({ amount, carried }: Schemas['Refund'], { isOperator }: Giver, usd: (value: number) => string): string {
  const pays = isOperator && carried > 0 ? ` The platform pays ${usd(carried)} of it.` : '';
  return `${usd(amount)} was given back.${pays}`;
}

function Explanation({ failure }: { readonly failure: unknown }) {
  if (isUnknown(failure)) {
    return (
      <Note tone="warn">
        It is not known whether this was carried out. Send it again with the same reference: it counts once.
      </Note>
    );
  }
  return failure instanceof ApiFailure && failure.status === 409 ? (
    <Note tone="warn">Nothing was given back.</Note>
  ) : null;
}
