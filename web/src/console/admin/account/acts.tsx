import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../../api/client.ts';
import { Button, ConfirmDialog, Note, say } from '../../../design/index.ts';
import { money } from '../../../i18n/format.ts';
import { useI18n } from '../../../i18n/i18n.tsx';
import { api, session } from '../../../session.ts';
import type { MoneyAct } from './money-acts.ts';
import { MoneyDialog } from './money-dialog.tsx';

type Account = Schemas['AccountDetails'];
type Open = MoneyAct | 'suspend' | 'resume' | 'close';

/** What an operator can do to an account. Each act has a dialog that says what follows from it. */
export function Acts({ account, onChanged }: { readonly account: Account; readonly onChanged: () => void }) {
  const [open, setOpen] = useState<Open | null>(null);
  const close = (): void => setOpen(null);
  if (account.status === 'closed') return null;
  const isOwn = account.account_id === session.value?.me.account_id;
  return (
    <>
      <Button kind="primary" onClick={() => setOpen('credit')}>
        Credit
      </Button>
      <Button onClick={() => setOpen('debit')}>Debit</Button>
      {account.payable > 0 && <Button onClick={() => setOpen('payout')}>Record payout</Button>}
      {!isOwn && account.status === 'active' && <Button onClick={() => setOpen('suspend')}>Suspend</Button>}
      {!isOwn && account.status === 'suspended' && (
        <>
          <Button onClick={() => setOpen('resume')}>Resume</Button>
          <Button kind="danger" onClick={() => setOpen('close')}>
            Close account
          </Button>
        </>
      )}
      {open !== null && open !== 'suspend' && open !== 'resume' && open !== 'close' && (
        <MoneyDialog act={open} account={account} onClose={close} onDone={onChanged} />
      )}
      {open === 'suspend' && <Suspend account={account} onClose={close} onChanged={onChanged} />}
      {open === 'resume' && <Resume account={account} onClose={close} onChanged={onChanged} />}
      {open === 'close' && <Close account={account} onClose={close} onChanged={onChanged} />}
    </>
  );
}

type Props = { readonly account: Account; readonly onClose: () => void; readonly onChanged: () => void };

async function setStatus(account: Account, status: 'active' | 'suspended'): Promise<void> {
  await dataOf(
    api.value.PATCH('/api/v1/admin/accounts/{id}', {
      params: { path: { id: account.account_id } },
      body: { status },
    }),
  );
}

const Suspend = ({ account, onClose, onChanged }: Props) => (
  <ConfirmDialog
    title={`Suspend ${account.owner_id}?`}
    confirm="Suspend account"
    onClose={onClose}
    act={async () => {
      await setStatus(account, 'suspended');
      say('The account is suspended.');
      onChanged();
    }}
  >
    <p>Every key of this account gets 403 from its next request on.</p>
    <p>What it sells is no longer listed within a second, and calls to it are 404.</p>
    <p class="soft">Calls under way go on, and no money moves. You can resume the account at any time.</p>
  </ConfirmDialog>
);

const Resume = ({ account, onClose, onChanged }: Props) => (
  <ConfirmDialog
    title={`Resume ${account.owner_id}?`}
    confirm="Resume account"
    danger={false}
    onClose={onClose}
    act={async () => {
      await setStatus(account, 'active');
      say('The account is active again.');
      onChanged();
    }}
  >
    <p>Its keys work again from the next request on, and its active services are listed again.</p>
  </ConfirmDialog>
);

function Close({ account, onClose, onChanged }: Props) {
  const { language } = useI18n();
  const left = [
    account.balance !== 0 && `${money(account.balance, language)} in the wallet: debit it`,
    (account.held ?? 0) > 0 && `${money(account.held ?? 0, language)} held by open calls: wait for them`,
    account.payable > 0 && `${money(account.payable, language)} payable: pay it out`,
  ].filter((text) => text !== false);
  return (
    <ConfirmDialog
      title={`Close ${account.owner_id} for good?`}
      confirm="Close for good"
      onClose={onClose}
      act={async () => {
        await dataOf(
          api.value.POST('/api/v1/admin/accounts/{id}/close', { params: { path: { id: account.account_id } } }),
        );
        say('The account is closed.');
        onChanged();
      }}
    >
      {left.length > 0 && <Note tone="warn">It cannot be closed yet. There is {left.join('; ')}.</Note>}
      <p>Its keys are revoked, its services are removed, and its label and other names are erased.</p>
      <p>Calls and money stay on record under the account's id. Nothing opens the account again.</p>
    </ConfirmDialog>
  );
}
