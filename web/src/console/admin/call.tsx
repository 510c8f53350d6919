import { useState } from 'preact/hooks';
import { ApiFailure, dataOf, type Schemas } from '../../api/client.ts';
import { Button, Card, CopyButton, Empty, FailureNote, LinkButton, Note, Skeleton } from '../../design/index.ts';
import { bytes, duration, moment, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api } from '../../session.ts';
import { OutcomeBadge, When } from '../shared/cells.tsx';
import { outcomeOf } from '../shared/outcome.ts';
import { PageHead } from '../shared/page-head.tsx';
import { MoneyDialog } from './account/money-dialog.tsx';
import { Account } from './parts.tsx';

type Call = Schemas['Call'];

/** One call with both of its parties. */
export function CallPage({ id }: { readonly id: string }) {
  const call = useResource(`call ${id}`, (signal) =>
    dataOf(api.value.GET('/api/v1/usage/{usage_id}', { params: { path: { usage_id: id } }, signal })),
  );
  const { data, failure } = call;
  const isUnknown = failure instanceof ApiFailure && failure.status === 404;
  return (
    <>
      <PageHead
        title="Call"
        lead={
          <span class="account-title">
            <code class="break">{id}</code>
            <CopyButton text={id} label="Copy id" />
          </span>
        }
      />
      {isUnknown ? (
        <Empty title="There is no such call" action={<LinkButton href="/console/calls">All calls</LinkButton>}>
          A call is known by its X-ACF-Usage-Id, about a second after it has ended. Requests that were refused are no
          calls.
        </Empty>
      ) : (
        failure !== null && <FailureNote failure={failure} retry={call.reload} />
      )}
      {data === null ? (
        failure === null && <Skeleton lines={8} />
      ) : (
        <>
          <Facts call={data} />
          {data.amount > 0 && <GiveBack call={data} />}
        </>
      )}
    </>
  );
}

function Facts({ call }: { readonly call: Call }) {
  const { language } = useI18n();
  const usd = (value: number | undefined): string => (value === undefined ? '–' : money(value, language));
  return (
    <Card>
      <dl class="facts">
        <dt>Outcome</dt>
        <dd>
          <OutcomeBadge call={call} side="others" />
        </dd>
        <dt>Why</dt>
        <dd>{outcomeOf(call, 'others').text}</dd>
        <dt>When</dt>
        <dd>
          <When at={call.created_at} />
        </dd>
        <dt>Buyer</dt>
        <dd>{call.account_id !== undefined && <Account id={call.account_id} label={call.owner_id ?? ''} />}</dd>
        <dt>Key</dt>
        <dd>
          <a href={`/console/calls?key_id=${call.key_id}`}>
            <code class="break">{call.key_id}</code>
          </a>
        </dd>
        <dt>Provider</dt>
        <dd>
          {call.provider_id !== undefined && <Account id={call.provider_id} label={call.provider_owner_id ?? ''} />}
        </dd>
        <dt>Service</dt>
        <dd>
          <a href={`/console/calls?service_id=${call.service_id}`}>{call.service_name}</a>
        </dd>
        <dt>Request</dt>
        <dd>
          <code class="break">
            {call.method} {call.path}
          </code>
        </dd>
        <dt>Status</dt>
        <dd>{call.status === 0 ? 'unknown: the gateway died during the call' : call.status}</dd>
        <dt>Latency</dt>
        <dd>{duration(call.latency_ms, language)}</dd>
        <dt>Size</dt>
        <dd>
          {bytes(call.request_bytes, language)} sent, {bytes(call.response_bytes, language)} received
        </dd>
        <dt>Charged</dt>
        <dd>
          {call.free_tier ? 'nothing: a free call' : usd(call.amount)}
          {call.authorized !== undefined && <span class="soft"> of {usd(call.authorized)} at most</span>}
          {call.clamped === true && <span class="soft">; the service reported more</span>}
        </dd>
        <dt>Fee</dt>
        <dd>
          {usd(call.fee)} <span class="soft">to the platform</span>
        </dd>
        <dt>Earned</dt>
        <dd>
          {usd(call.earned)} <span class="soft">by the provider</span>
        </dd>
      </dl>
    </Card>
  );
}

/** The price as a credit. The reference names the call, so each call is given back once, whoever asks and however often. */
function GiveBack({ call }: { readonly call: Call }) {
  const { language } = useI18n();
  const [isOpen, setOpen] = useState(false);
  const reference = `call ${call.usage_id}`;
  const account_id = call.account_id ?? '';
  const found = useResource(`given back ${reference}`, async (signal) => {
    const [{ credits }, account] = await Promise.all([
      dataOf(api.value.GET('/api/v1/admin/credits', { params: { query: { reference } }, signal })),
      dataOf(api.value.GET('/api/v1/admin/accounts/{id}', { params: { path: { id: account_id } }, signal })),
    ]);
    return { credit: credits[0] ?? null, account };
  });
  const { data } = found;
  return (
    <Card title="Give the money back">
      <div class="stack-tight">
        {found.failure !== null && <FailureNote failure={found.failure} retry={found.reload} />}
        {data === null && found.failure === null && <Skeleton lines={2} />}
        {data !== null && data.credit !== null && (
          <Note tone="good">
            {money(data.credit.amount, language)} was credited for this call on{' '}
            {moment(data.credit.created_at, language)}.
          </Note>
        )}
        {data !== null && data.credit === null && data.account.status === 'closed' && (
          <p class="soft">The account of the buyer is closed: it takes no credit.</p>
        )}
        {data !== null && data.credit === null && data.account.status !== 'closed' && (
          <>
            <p class="soft">
              Credits the buyer with the price of this call, at the cost of the platform: the provider keeps what it
              earned. A call is given back once at most.
            </p>
            <div>
              <Button onClick={() => setOpen(true)}>Credit {money(call.amount, language)} to the buyer</Button>
            </div>
          </>
        )}
      </div>
      {isOpen && data !== null && (
        <MoneyDialog
          act="credit"
          account={data.account}
          lead="Gives back what the buyer paid for this call. The reference names the call: keep it, and the call is given back once."
          preset={{ amount: String(call.amount), reference }}
          onClose={() => setOpen(false)}
          onDone={found.reload}
        />
      )}
    </Card>
  );
}
