import './provider.css';
import { useAddress } from '../../address.tsx';
import { ApiFailure, dataOf, type Schemas } from '../../api/client.ts';
import { FailureNote, SkeletonPage } from '../../design/index.ts';
import { Card, CopyButton } from '../../design/more.ts';
import { bytes, duration, moment } from '../../i18n/format.ts';
import { useResource } from '../../resource.ts';
import { api } from '../../session.ts';
import { OutcomeBadge } from '../shared/cells.tsx';
import { outcomeOf } from '../shared/outcome.ts';
import { PageHead } from '../shared/page-head.tsx';
import { GiveBack, RefundsOf } from '../shared/refunds/refunds.tsx';
import { keptOf } from '../shared/refunds/shares.ts';
import { EN, usd } from './service-words.tsx';

type Call = Schemas['Call'];

/** `/console/calls/{usage_id}` of a provider: one call of an own service, which can be given back. */
export default function CallPage() {
  const id = useAddress().path.split('/')[3] ?? '';
  const call = useResource(`call ${id}`, (signal) =>
    dataOf(api.value.GET('/api/v1/usage/{usage_id}', { params: { path: { usage_id: id } }, signal })),
  );
  const earnings = useResource(`payable ${id}`, (signal) =>
    dataOf(api.value.GET('/api/v1/earnings/me', { params: { query: {} }, signal })),
  );
  const { data, failure } = call;
  const onDone = (): void => {
    call.reload();
    earnings.reload();
  };
  return (
    <>
      <a class="back" href={`/console/services${data === null ? '' : `/${data.service_id}/calls`}`}>
        ← {data === null ? 'Services' : `Calls of ${data.service_name === '' ? 'the service' : data.service_name}`}
      </a>
      <PageHead
        title="Call"
        lead={<code class="break">{id}</code>}
        actions={<CopyButton text={id} label="Copy id" />}
      />
      {failure !== null && <FailureNote failure={failure} retry={call.reload} />}
      {failure instanceof ApiFailure && failure.status === 404 && (
        <p class="soft">A call is listed a second after its end. Only calls of your own services are.</p>
      )}
      {data === null && failure === null && <SkeletonPage shape="card" />}
      {data !== null && (
        <>
          <Facts call={data} />
          <RefundsOf call={data} title="Given back" />
          {/* What the own account called costs nothing. */}
          {data.earned !== undefined && (
            <GiveBack
              call={data}
              giver={{ isOperator: false, payable: earnings.data?.payable ?? null }}
              onDone={onDone}
            />
          )}
        </>
      )}
    </>
  );
}

function Facts({ call }: { readonly call: Call }) {
  const kept = keptOf({ ...call, fee: call.fee ?? 0 });
  const wasOf = (before: number, after: number): string =>
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
        <dt>Began</dt>
        <dd class="number">
          {moment(call.created_at, EN)} <span class="faint">{call.created_at}</span>
        </dd>
        <dt>Request</dt>
        <dd>
          <code class="break">
            {call.method} {call.path}
          </code>
        </dd>
        <dt>Status</dt>
        <dd class="number">{call.status === 0 ? 'unknown: the gateway died during the call' : call.status}</dd>
        <dt>Took</dt>
        <dd class="number">{duration(call.latency_ms, EN)}</dd>
        <dt>Size</dt>
        <dd class="number">
          {bytes(call.request_bytes, EN)} sent, {bytes(call.response_bytes, EN)} received
        </dd>
        <dt>Buyer paid</dt>
        <dd class="number">
          {call.free_tier ? 'nothing: a free call' : usd(call.amount)}
          {call.authorized !== undefined && <span class="soft"> of {usd(call.authorized)} at most</span>}
        </dd>
        {call.refunded !== undefined && (
          <>
            <dt>Given back</dt>
            <dd class="number">{usd(call.refunded)}</dd>
          </>
        )}
        {call.fee !== undefined && (
          <>
            <dt>Fee</dt>
            <dd class="number">
              {usd(kept.fee)} <span class="soft">to the platform{wasOf(call.fee, kept.fee)}</span>
            </dd>
          </>
        )}
        {call.earned !== undefined && (
          <>
            <dt>You earned</dt>
            <dd class="number">
              {usd(kept.earned)}
              <span class="soft">{wasOf(call.earned, kept.earned)}</span>
            </dd>
          </>
        )}
      </dl>
    </Card>
  );
}
