import type { OperatorDetails } from '../../../../src/platform/operator.ts';
import { dataOf, type Schemas } from '../../api/client.ts';
import { FailureNote, LinkButton, Note, SkeletonCard } from '../../design/index.ts';
import { Card, CopyButton, Stat, Stats } from '../../design/more.ts';
import { useFact } from '../../first-data.ts';
import { ago, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api } from '../../session.ts';
import { contactAddress, webAddress } from '../../web-address.ts';

/** What a buyer's account has, and how to add money. @param isWhole also show the sum with which the statement ends */
export function Wallet({ account, isWhole = false }: { readonly account: string; readonly isWhole?: boolean }) {
  const { language } = useI18n();
  const balance = useResource('balance', (signal) => dataOf(api.value.GET('/api/v1/balance/me', { signal })));
  const { data, failure } = balance;
  return (
    <>
      {failure !== null && <FailureNote failure={failure} retry={balance.reload} />}
      <Stats>
        <Stat
          label={isWhole ? 'Balance' : 'Left for this key'}
          value={data === null ? '…' : money(data.balance, language)}
          hint={isWhole ? 'what calls can spend now' : leftHint(data, language)}
        />
        <Stat
          label="Held"
          value={data === null ? '…' : money(data.held, language)}
          hint="by calls under way; what they do not cost comes back"
        />
        {isWhole && (
          <Stat
            label="In the statement"
            value={
              data === null
                ? '…'
                : money((Math.round(data.balance * 1e6) + Math.round(data.held * 1e6)) / 1e6, language)
            }
            hint="both together: a call is in it once it has ended"
          />
        )}
      </Stats>
      {(data !== null || failure === null) && (
        <div class={isWhole ? 'top-up' : undefined}>
          {data === null ? (
            <SkeletonCard lines={3} />
          ) : data.limit_key === undefined ? (
            <TopUp url={data.top_up} account={account} />
          ) : (
            <Note>
              <span>
                A budget is what binds this key, so money that is added to the account does not help it.{' '}
                <a href="/console/keys">The budget</a> can be raised by the keys above this one.
              </span>
            </Note>
          )}
        </div>
      )}
    </>
  );
}

type Balance = Schemas['Balance'];

/** What bounds a key with a parent: in one line, since the balance comes later than the page. */
export function leftHint(balance: Pick<Balance, 'limit_key' | 'resets_at'> | null, language: string): string {
  if (balance === null) return '\u00a0';
  if (balance.limit_key === undefined) return 'of the balance';
  const again = balance.resets_at;
  return again == null ? 'of a budget' : `full again ${ago(again, language, Date.now())}`;
}

function TopUp({ url, account }: { readonly url: string | undefined; readonly account: string }) {
  // The operator sets this URL and the gateway checks it. Even so, a page must not link to anything other than a web page.
  const page = webAddress(url);
  const reach = contactAddress(useFact<OperatorDetails>('operator')?.contact);
  return (
    <Card title="Add money">
      <div class="stack-tight">
        {page !== null ? (
          <p>
            The operator of this marketplace takes payments on a page of its own. It asks for the id of this account.
          </p>
        ) : (
          <p>
            Ask the operator of this marketplace to add money to this account. Tell them the amount and this id. The
            money is here as soon as the operator has added it.{' '}
            {reach !== null ? <a href={reach}>Contact</a> : 'This marketplace has published no contact.'}
          </p>
        )}
        <p class="account-id">
          <span class="soft">Account</span> <code class="break">{account}</code>
          <CopyButton text={account} label="Copy id" />
        </p>
        {page !== null && (
          <div>
            <LinkButton kind="primary" href={page} rel="noopener noreferrer">
              Add money
            </LinkButton>
          </div>
        )}
      </div>
    </Card>
  );
}
