import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../../api/client.ts';
import { Button, say } from '../../../design/index.ts';
import { ConfirmDialog, Dialog, TextInput } from '../../../design/more.ts';
import { money } from '../../../i18n/format.ts';
import { useI18n } from '../../../i18n/i18n.tsx';
import { api, session } from '../../../session.ts';
import type { MoneyAct } from './money-acts.ts';
import { MoneyDialog } from './money-dialog.tsx';

type Account = Schemas['AccountDetails'];
type Open = MoneyAct | 'suspend' | 'resume' | 'close' | 'profile';

/** What an operator can do with an account. Each act has a dialog that explains its consequences. */
export function Acts({ account, onChanged }: { readonly account: Account; readonly onChanged: () => void }) {
  const [open, setOpen] = useState<Open | null>(null);
  const [isAll, setIsAll] = useState(false);
  const close = (): void => {
    setOpen(null);
    setIsAll(false);
  };
  if (account.status === 'closed') return null;
  const isOwn = account.account_id === session.value?.me.account_id;
  return (
    <>
      <Button kind="primary" onClick={() => setOpen('credit')}>
        Add money
      </Button>
      <Button onClick={() => setOpen('debit')}>Take out money</Button>
      {account.payable > 0 && <Button onClick={() => setOpen('payout')}>Record payout</Button>}
      {/* One button: after the act the focus comes back to it. */}
      {!isOwn && (
        <Button onClick={() => setOpen(account.status === 'active' ? 'suspend' : 'resume')}>
          {account.status === 'active' ? 'Suspend' : 'Resume'}
        </Button>
      )}
      {hasProfile(account) && <Button onClick={() => setOpen('profile')}>Clear profile</Button>}
      {!isOwn && (
        <Button kind="danger" onClick={() => setOpen('close')}>
          Close account
        </Button>
      )}
      {open !== null && open !== 'suspend' && open !== 'resume' && open !== 'close' && open !== 'profile' && (
        <MoneyDialog
          act={open}
          account={account}
          preset={isAll && open === 'debit' ? { amount: String(account.balance) } : undefined}
          onClose={close}
          onDone={onChanged}
        />
      )}
      {open === 'suspend' && <Suspend account={account} onClose={close} onChanged={onChanged} />}
      {open === 'resume' && <Resume account={account} onClose={close} onChanged={onChanged} />}
      {open === 'profile' && <ClearProfile account={account} onClose={close} onChanged={onChanged} />}
      {open === 'close' && (
        <Close
          account={account}
          onClose={close}
          onChanged={onChanged}
          onMove={(act) => {
            setIsAll(true);
            setOpen(act);
          }}
        />
      )}
    </>
  );
}

const hasProfile = ({ display_name: name, contact, url }: Account): boolean =>
  name !== null || contact !== null || url !== null;

type Left = { readonly text: string; readonly act: MoneyAct | null; readonly verb: string };

/** What must be done before the account can be closed. */
function leftOf({ balance, held, payable }: Account, usd: (amount: number) => string): readonly Left[] {
  const left: Left[] = [];
  if (balance > 0) left.push({ text: `A balance of ${usd(balance)}`, act: 'debit', verb: 'Take it out' });
  if (balance < 0) left.push({ text: `A balance of −${usd(-balance)}`, act: 'credit', verb: 'Make it up' });
  if ((held ?? 0) > 0)
    left.push({ text: `${usd(held ?? 0)} held by open calls: wait for their end`, act: null, verb: '' });
  if (payable > 0) left.push({ text: `${usd(payable)} payable`, act: 'payout', verb: 'Pay it out' });
  return left;
}

type Props = { readonly account: Account; readonly onClose: () => void; readonly onChanged: () => void };

async function setStatus(account: Account, body: Schemas['AccountChange']): Promise<void> {
  const params = { path: { id: account.account_id } };
  await dataOf(api.value.PATCH('/api/v1/admin/accounts/{id}', { params, body }));
}

function Suspend({ account, onClose, onChanged }: Props) {
  const [reason, setReason] = useState('');
  return (
    <ConfirmDialog
      title={`Suspend ${account.owner_id}?`}
      confirm="Suspend account"
      onClose={onClose}
      act={async () => {
        const told = reason.trim();
        await setStatus(account, { status: 'suspended', ...(told === '' ? {} : { reason: told }) });
        say('The account is suspended.');
        onChanged();
      }}
    >
      <p>Every key of this account is refused from its next request on. It may still read its own money.</p>
      <p>Within a second, what it sells is no longer listed and cannot be called.</p>
      <p class="soft">Calls under way go on, and no money moves. You can resume the account at any time.</p>
      <TextInput
        label="Reason"
        hint="The account is told. You may leave it empty."
        maxLength={500}
        value={reason}
        onInput={(event) => setReason(event.currentTarget.value)}
      />
    </ConfirmDialog>
  );
}

const Resume = ({ account, onClose, onChanged }: Props) => (
  <ConfirmDialog
    title={`Resume ${account.owner_id}?`}
    confirm="Resume account"
    danger={false}
    onClose={onClose}
    act={async () => {
      await setStatus(account, { status: 'active' });
      say('The account is active again.');
      onChanged();
    }}
  >
    <p>Its keys work again from the next request on, and its active services are listed again.</p>
  </ConfirmDialog>
);

const ClearProfile = ({ account, onClose, onChanged }: Props) => (
  <ConfirmDialog
    title={`Clear the profile of ${account.owner_id}?`}
    confirm="Clear profile"
    onClose={onClose}
    act={async () => {
      const params = { path: { id: account.account_id } };
      await dataOf(api.value.DELETE('/api/v1/admin/accounts/{id}/profile', { params }));
      say('The profile is cleared.');
      onChanged();
    }}
  >
    <p>Its listings no longer show display name, contact and web page. The audit keeps what they were.</p>
    <p class="soft">Its provider may set others. To prevent that, suspend the account.</p>
  </ConfirmDialog>
);

function Close({ account, onClose, onChanged, onMove }: Props & { readonly onMove: (act: MoneyAct) => void }) {
  const { language } = useI18n();
  const left = leftOf(account, (amount) => money(amount, language));
  if (left.length > 0) {
    return (
      <Dialog
        title={`${account.owner_id} cannot be closed yet`}
        onClose={onClose}
        actions={<Button onClick={onClose}>Back</Button>}
      >
        <p>An account is closed when it has no money left. This one has:</p>
        <ul class="left">
          {left.map(({ text, act, verb }) => (
            <li key={text}>
              <span>{text}</span>
              {act !== null && (
                <Button small onClick={() => onMove(act)}>
                  {verb}
                </Button>
              )}
            </li>
          ))}
        </ul>
        {account.status === 'active' && (
          <p class="soft">Suspend it first: then its calls cannot change what is left.</p>
        )}
      </Dialog>
    );
  }
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
      <p>Its keys are revoked, its services are removed, and its label and other names are erased.</p>
      <p>Calls and money stay on record under the account's id. Nothing opens the account again.</p>
    </ConfirmDialog>
  );
}
