import { ApiFailure, dataOf, type Schemas } from '../../api/client.ts';
import { FailureNote, SkeletonPage } from '../../design/index.ts';
import { Card, CopyButton } from '../../design/more.ts';
import { bytes, count, duration, moment, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api } from '../../session.ts';
import { OutcomeBadge } from '../shared/cells.tsx';
import { outcomeOf, statusText } from '../shared/outcome.ts';
import { PageHead } from '../shared/page-head.tsx';
import { AskToGiveBack, RefundsOf } from '../shared/refunds/refunds.tsx';
import { leftOf } from '../shared/refunds/shares.ts';
import { callsOfKey, callsOfTag } from './usage.ts';

/** One call: what it was, how it ended, and what it cost. */
export function CallPage({ id }: { readonly id: string }) {
  const call = useResource(id, (signal) =>
    dataOf(api.value.GET('/api/v1/usage/{usage_id}', { params: { path: { usage_id: id } }, signal })),
  );
  return (
    <>
      <a class="back" href="/console/calls">
        ← All calls
      </a>
      <PageHead
        title="Call"
        lead={<code class="break">{id}</code>}
        actions={<CopyButton text={id} label="Copy id" />}
      />
      {call.failure !== null && <FailureNote failure={call.failure} retry={call.reload} />}
      {call.failure instanceof ApiFailure && call.failure.status === 404 && (
        <p class="soft">
          A call appears within a second of its end. A key for an agent sees its own calls and those of the keys below
          it.
        </p>
      )}
      {call.data === null && call.failure === null && <SkeletonPage shape="card" />}
      {call.data !== null && <Facts call={call.data} />}
    </>
  );
}

function Facts({ call }: { readonly call: Schemas['Call'] }) {
  const { language } = useI18n();
  const outcome = outcomeOf(call, 'buyer');
  const status = statusText(call.status);
  return (
    <>
      <Card>
        <div class="verdict">
          <div class="row-between">
            <span class="verdict-amount">{money(call.amount, language)}</span>
            <OutcomeBadge call={call} />
          </div>
          <p>{outcome.text}</p>
          {call.refunded !== undefined && (
            <p>
              <strong class="number">{money(call.refunded, language)}</strong> of it was given back to you, so the call
              cost <strong class="number">{money(leftOf(call), language)}</strong>.
            </p>
          )}
          {call.replays !== undefined && (
            <p>
              It was asked for <strong class="number">{count(call.replays + 1, language)}</strong> times with one
              Idempotency-Key, and charged at most once: the repeats got its answer again.
            </p>
          )}
          <AskToGiveBack call={call} />
        </div>
      </Card>
      <RefundsOf call={call} title="Given back" />
      <Card title="Details">
        <dl class="facts">
          <dt>Service</dt>
          <dd>
            <a href={`/services/${call.service_id}`}>{call.service_name === '' ? 'removed' : call.service_name}</a>
          </dd>
          <dt>Request</dt>
          <dd>
            <code>
              {call.method} {call.path}
            </code>
          </dd>
          <dt>Status</dt>
          <dd>
            <span class="number">{call.status}</span>
            {status !== null && <span class="soft"> {status}</span>}
          </dd>
          <dt>Charged</dt>
          <dd class="number">{money(call.amount, language)}</dd>
          {call.refunded !== undefined && (
            <>
              <dt>Given back</dt>
              <dd class="number">{money(call.refunded, language)}</dd>
            </>
          )}
          {call.authorized !== undefined && (
            <>
              <dt>At most</dt>
              <dd>
                <span class="number">{money(call.authorized, language)}</span>
                {call.clamped === true && <span class="soft"> the service reported more</span>}
              </dd>
            </>
          )}
          <dt>Free call</dt>
          <dd>{call.free_tier ? 'Yes' : 'No'}</dd>
          <dt>Time taken</dt>
          <dd class="number">{call.latency_ms === 0 ? 'not known' : duration(call.latency_ms, language)}</dd>
          <dt>Request body</dt>
          <dd class="number">{bytes(call.request_bytes, language)}</dd>
          <dt>Response body</dt>
          <dd class="number">{bytes(call.response_bytes, language)}</dd>
          <dt>Began</dt>
          <dd class="number">
            {moment(call.created_at, language)} <span class="faint">{call.created_at}</span>
          </dd>
          <dt>Outcome in the API</dt>
          <dd>
            <code class="faint">{call.outcome}</code>
          </dd>
          {call.tag !== undefined && (
            <>
              <dt>Tag</dt>
              <dd>
                <a class="break" href={callsOfTag(call.tag)}>
                  {call.tag}
                </a>
              </dd>
            </>
          )}
          {call.key_id !== undefined && (
            <>
              <dt>Key</dt>
              <dd>
                {call.key_label !== undefined && `${call.key_label} `}
                <a href={callsOfKey(call.key_id)}>
                  <code>{call.key_id}</code>
                </a>
              </dd>
            </>
          )}
        </dl>
      </Card>
    </>
  );
}
