import { ApiFailure, dataOf, type Schemas } from '../../api/client.ts';
import { Empty, FailureNote, LinkButton, SkeletonPage } from '../../design/index.ts';
import { Card, CopyButton } from '../../design/more.ts';
import { bytes, count, duration, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api } from '../../session.ts';
import { OutcomeBadge, When } from '../shared/cells.tsx';
import { outcomeOf } from '../shared/outcome.ts';
import { PageHead } from '../shared/page-head.tsx';
import { GiveBack, RefundsOf } from '../shared/refunds/refunds.tsx';
import { keptOf } from '../shared/refunds/shares.ts';
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
      <a class="back" href="/console/calls">
        ← All calls
      </a>
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
        failure === null && <SkeletonPage shape="card" />
      ) : (
        <>
          <Facts call={data} />
          {data.amount > 0 && <GivenBack call={data} onDone={call.reload} />}
        </>
      )}
    </>
  );
}

function Facts({ call }: { readonly call: Call }) {
  const { language } = useI18n();
  const usd = (value: number | undefined): string => (value === undefined ? '–' : money(value, language));
  const kept = keptOf({ ...call, fee: call.fee ?? 0 });
  const wasOf = (before: number | undefined, after: number): string =>
    before === after ? '' : `, ${usd(before)} before it was given back`;
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
        {call.tag !== undefined && (
          <>
            <dt>Tag</dt>
            <dd class="break">{call.tag}</dd>
          </>
        )}
        {call.replays !== undefined && (
          <>
            <dt>Asked for</dt>
            <dd>
              {count(call.replays + 1, language)} times{' '}
              <span class="soft">with one Idempotency-Key: the repeats got its answer again, and cost nothing</span>
            </dd>
          </>
        )}
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
        {call.refunded !== undefined && (
          <>
            <dt>Given back</dt>
            <dd>{usd(call.refunded)}</dd>
          </>
        )}
        <dt>Fee</dt>
        <dd>
          {usd(kept.fee)} <span class="soft">to the platform{wasOf(call.fee, kept.fee)}</span>
        </dd>
        <dt>Earned</dt>
        <dd>
          {usd(kept.earned)} <span class="soft">by the provider{wasOf(call.earned, kept.earned)}</span>
        </dd>
      </dl>
    </Card>
  );
}

/** What an operator can do about a complaint. */
function GivenBack({ call, onDone }: { readonly call: Call; readonly onDone: () => void }) {
  const provider = useResource(`payable of ${call.provider_id} ${call.refunded}`, (signal) =>
    dataOf(api.value.GET('/api/v1/admin/accounts/{id}', { params: { path: { id: call.provider_id ?? '' } }, signal })),
  );
  return (
    <>
      <RefundsOf call={call} title="Given back" />
      <GiveBack call={call} giver={{ isOperator: true, payable: provider.data?.payable ?? null }} onDone={onDone} />
    </>
  );
}
