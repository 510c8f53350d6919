import { dataOf } from '../../api/client.ts';
import { Card, FailureNote, Skeleton } from '../../design/index.ts';
import { count, duration, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api } from '../../session.ts';
import { OutcomeBadge, When } from '../shared/cells.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { AccountLink } from './parts.tsx';

/** One call with both of its parties. */
export function CallPage({ id }: { readonly id: string }) {
  const { language } = useI18n();
  const call = useResource(`call ${id}`, (signal) =>
    dataOf(api.value.GET('/api/v1/usage/{usage_id}', { params: { path: { usage_id: id } }, signal })),
  );
  const { data } = call;
  const usd = (value: number | undefined): string => (value === undefined ? '–' : money(value, language));
  return (
    <>
      <PageHead title="Call" lead={<code class="break">{id}</code>} />
      {call.failure !== null && <FailureNote failure={call.failure} retry={call.reload} />}
      {data === null ? (
        call.failure === null && <Skeleton lines={8} />
      ) : (
        <Card>
          <dl class="facts">
            <dt>Outcome</dt>
            <dd>
              <OutcomeBadge call={data} side="others" />
            </dd>
            <dt>When</dt>
            <dd>
              <When at={data.created_at} />
            </dd>
            <dt>Service</dt>
            <dd>
              <a href={`/console/calls?service_id=${data.service_id}`}>{data.service_name}</a>
            </dd>
            <dt>Request</dt>
            <dd>
              <code class="break">
                {data.method} {data.path}
              </code>
            </dd>
            <dt>Status</dt>
            <dd>{data.status === 0 ? 'unknown: the gateway died during the call' : data.status}</dd>
            <dt>Latency</dt>
            <dd>{duration(data.latency_ms, language)}</dd>
            <dt>Bytes</dt>
            <dd>
              {count(data.request_bytes, language)} sent, {count(data.response_bytes, language)} received
            </dd>
            <dt>Charged</dt>
            <dd>{data.free_tier ? 'a free call' : usd(data.amount)}</dd>
            <dt>Fee</dt>
            <dd>{usd(data.fee)}</dd>
            <dt>Earned</dt>
            <dd>{usd(data.earned)}</dd>
            <dt>Buyer</dt>
            <dd>{data.account_id !== undefined && <AccountLink id={data.account_id} />}</dd>
            <dt>Key</dt>
            <dd>
              <code class="break">{data.key_id}</code>
            </dd>
            <dt>Provider</dt>
            <dd>{data.provider_id !== undefined && <AccountLink id={data.provider_id} />}</dd>
          </dl>
        </Card>
      )}
    </>
  );
}
