import { useState } from 'preact/hooks';
import type { Schemas } from '../../../api/client.ts';
import { Button, Note } from '../../../design/index.ts';
import { Card, Table } from '../../../design/more.ts';
import { money } from '../../../i18n/format.ts';
import { useI18n } from '../../../i18n/i18n.tsx';
import { When } from '../cells.tsx';
import { GiveBackDialog, type Giver } from './give-back-dialog.tsx';
import { leftOf } from './shares.ts';

type Call = Schemas['Call'];

/** What was given back of a call after it had ended, on its page. @param title in words for the reader */
export function RefundsOf({ call, title }: { readonly call: Call; readonly title: string }) {
  const refunds = call.refunds ?? [];
  if (refunds.length === 0) return null;
  return (
    <Card flush title={title}>
      <Table
        caption={title}
        rows={refunds}
        keyOf={({ by, reference }) => `${by} ${reference}`}
        columns={[
          { title: 'When', cell: ({ created_at: at }) => <When at={at} /> },
          { title: 'Amount', amount: ({ amount }) => amount },
          { title: 'By', cell: ({ by }) => (by === 'provider' ? 'The provider' : 'The operator') },
          { title: 'Reason', wide: true, cell: ({ reason }) => <span class="break">{reason}</span> },
          { title: 'Reference', wide: true, cell: ({ reference }) => <span class="break">{reference}</span> },
        ]}
      />
    </Card>
  );
}

/** The API refuses to give back a call that is older. */
const REFUND_DAYS = 90;

const isTooOld = (call: Call): boolean => Date.now() - Date.parse(call.created_at) > REFUND_DAYS * 86_400_000;

/** Tells a buyer whom to ask when a charged call was not what they paid for. */
export function AskToGiveBack({ call }: { readonly call: Call }) {
  if (leftOf(call) === 0 || isTooOld(call)) return null;
  return (
    <p class="soft">
      Not what you paid for? Tell the <a href={`/services/${call.service_id}`}>provider of the service</a>, or the
      operator of this gateway, the id of this call. Both can give back all or part of the price within {REFUND_DAYS}{' '}
      days.
    </p>
  );
}

/** The card with which a provider or an operator gives back what is left of a call's charge. */
export function GiveBack({
  call,
  giver,
  onDone,
}: {
  readonly call: Call;
  readonly giver: Giver;
  readonly onDone: () => void;
}) {
  const { language } = useI18n();
  const [isOpen, setOpen] = useState(false);
  if (call.amount === 0) return null;
  const left = leftOf(call);
  return (
    <Card title="Give this call back">
      <div class="stack-tight">
        {left === 0 ? (
          <Note tone="good">All of it was given back.</Note>
        ) : isTooOld(call) ? (
          <p class="soft">A call can be given back within {REFUND_DAYS} days.</p>
        ) : (
          <>
            <p class="soft">
              {giver.isOperator
                ? 'The buyer gets the money back, the provider loses what it earned, and the platform its fee. What the earnings do not cover the platform pays.'
                : 'If the buyer is right: they get the money back, at once, out of your earnings. A call that is given back whole counts as a failure in the quality of the service.'}
            </p>
            <div>
              <Button onClick={() => setOpen(true)}>Give this call back</Button>{' '}
              {left < call.amount && <span class="small soft">{money(left, language)} is left of it.</span>}
            </div>
          </>
        )}
      </div>
      {isOpen && <GiveBackDialog call={call} giver={giver} onClose={() => setOpen(false)} onDone={onDone} />}
    </Card>
  );
}
