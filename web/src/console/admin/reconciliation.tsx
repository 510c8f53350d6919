import './admin.css';
import { useState } from 'preact/hooks';
import { dataOf } from '../../api/client.ts';
import { Badge, Button, FailureNote, Note, SkeletonPage } from '../../design/index.ts';
import { Card, Stat, Stats, Table } from '../../design/more.ts';
import { ago, count, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api } from '../../session.ts';
import { State, When } from '../shared/cells.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { CorrectionDialog, type Drift } from './correction-dialog.tsx';
import { AccountLink, Changes } from './parts.tsx';
import { type Reconciliation, runNow } from './run-reconciliation.ts';
import { useEvery } from './use-every.ts';

const ASK_EVERY_MS = 15_000;

/** `1 wallet`, `2 wallets` */
const several = (value: number, thing: string, language: string): string =>
  `${count(value, language)} ${thing}${value === 1 ? '' : 's'}`;

/** `/console/reconciliation`: does the money agree? */
export default function ReconciliationPage() {
  const { language } = useI18n();
  const page = useResource('reconciliation', (signal) =>
    dataOf(api.value.GET('/api/v1/admin/reconciliation', { signal })),
  );
  const [made, setMade] = useState<Reconciliation | null>(null);
  const [progress, setProgress] = useState<string | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  useEvery(ASK_EVERY_MS, page.reload);
  const data = newer(made, page.data);
  const run = async (): Promise<void> => {
    setFailure(null);
    try {
      setMade(await runNow(setProgress));
    } catch (error) {
      setFailure(error);
    } finally {
      setProgress(null);
    }
  };
  return (
    <>
      <PageHead
        title="Reconciliation"
        lead="Compares the wallets in Redis with the balances in Postgres: every minute or so while money moves, every ten otherwise, and whenever you ask."
        actions={
          <Button kind="primary" busy={progress !== null} onClick={() => void run()}>
            Compare now
          </Button>
        }
      />
      <div role="status" aria-live="polite">
        {progress !== null && <Note>{progress}</Note>}
      </div>
      {failure !== null && <FailureNote failure={failure} retry={() => void run()} />}
      {page.failure !== null && <FailureNote failure={page.failure} retry={page.reload} />}
      {data === null ? (
        page.failure === null && <SkeletonPage shape="figures" />
      ) : (
        <Report data={data} language={language} onCorrected={() => void run()} />
      )}
    </>
  );
}

/** Times in RFC 3339 compare as texts. */
function newer(made: Reconciliation | null, seen: Reconciliation | null): Reconciliation | null {
  if (made === null || seen === null) return made ?? seen;
  return (seen.checked_at ?? '') > (made.checked_at ?? '') ? seen : made;
}

function Report({
  data,
  language,
  onCorrected,
}: {
  readonly data: Reconciliation;
  readonly language: string;
  readonly onCorrected: () => void;
}) {
  const [ending, setEnding] = useState<Drift | null>(null);
  const { totals } = data;
  const usd = (value: number): string => money(value, language);
  const drifts = data.shards.flatMap((shard) => shard.drifts);
  const reasons = [...new Set(data.shards.flatMap((shard) => shard.not_compared ?? []))];
  const agrees = totals.drift === 0 && totals.drifting_accounts === 0 && data.books_sum === 0;
  return (
    <>
      <Card>
        <div class="row">
          <Badge tone={data.checked_at === null ? 'warn' : agrees ? 'good' : 'bad'}>
            {data.checked_at === null ? 'Not compared yet' : agrees ? 'The money agrees' : 'The money does not agree'}
          </Badge>
          <span class="soft">
            {data.checked_at === null
              ? 'The writer compares within a minute.'
              : `Compared ${ago(data.checked_at, language, Date.now())}.`}
          </span>
          {totals.shards_not_compared > 0 && (
            <Badge tone="warn">
              {several(totals.shards_not_compared, 'part', language)} of the accounts not compared
            </Badge>
          )}
        </div>
        {reasons.map((reason) => (
          <Note key={reason} tone="warn">
            Not compared: {reason}
          </Note>
        ))}
      </Card>
      <Stats>
        <Stat label="In wallets" value={usd(totals.wallet)} hint={several(totals.wallets, 'wallet', language)} />
        <Stat label="In balances" value={usd(totals.settled)} hint="of the same accounts, in Postgres" />
        <Stat label="Not stored yet" value={usd(totals.streamed)} hint="usage on its way" />
      </Stats>
      <Stats>
        <Stat label="Held" value={usd(totals.held)} hint="by open calls" />
        <Stat label="Drift" value={usd(totals.drift)} hint={several(totals.drifting_accounts, 'account', language)} />
        <Stat label="Sum of all entries" value={usd(data.books_sum)} hint="always 0" />
      </Stats>
      <p class="small soft">
        An account has a wallet once it is used. The money of the others is in Postgres alone, not in wallets and
        balances above.
      </p>
      <Card title="Accounts that do not agree" flush>
        {drifts.length === 0 ? (
          <p class="quiet">None. Every wallet has exactly what Postgres says.</p>
        ) : (
          <Table
            caption="Accounts that do not agree"
            keyOf={(drift) => drift.account_id}
            rows={drifts}
            columns={[
              { title: 'Account', cell: (row) => <AccountLink id={row.account_id} label={row.owner_id} /> },
              { title: 'Wallet', amount: (row) => row.wallet },
              { title: 'Expected', amount: (row) => row.expected },
              { title: 'Drift', amount: (row) => row.drift },
              { title: 'Since', cell: (row) => <When at={row.since} /> },
              {
                title: 'Not repaired, because',
                wide: true,
                cell: (row) => <span class="break">{row.not_repaired}</span>,
              },
              {
                title: 'Decide',
                cell: (row) => (
                  <Button
                    small
                    aria-label={`End the drift of ${row.owner_id || row.account_id}`}
                    onClick={() => setEnding(row)}
                  >
                    End drift
                  </Button>
                ),
              },
            ]}
          />
        )}
        {ending !== null && <CorrectionDialog drift={ending} onClose={() => setEnding(null)} onDone={onCorrected} />}
      </Card>
      {data.corrections.length > 0 && (
        <Card title="Corrections" flush>
          <Table
            caption="Drifts that operators ended"
            keyOf={({ reference }) => reference}
            rows={data.corrections}
            columns={[
              { title: 'When', cell: (row) => <When at={row.created_at} /> },
              { title: 'Account', cell: (row) => <AccountLink id={row.account_id} label={row.owner_id} /> },
              { title: 'Drift', amount: (row) => row.drift },
              { title: 'Believed', cell: (row) => (row.believe === 'postgres' ? 'Postgres' : 'Redis') },
              { title: 'Reason', wide: true, cell: (row) => <span class="break">{row.reason}</span> },
              { title: 'Reference', cell: (row) => <span class="break">{row.reference}</span> },
              { title: 'By', cell: (row) => <span class="break">{row.made_by}</span> },
            ]}
          />
        </Card>
      )}
      <Card title="Repairs" flush>
        {data.repairs.length === 0 ? (
          <p class="quiet">None. A repair follows when a Redis came back that is older than Postgres.</p>
        ) : (
          <Table
            caption="Repairs"
            keyOf={(repair) => String(repair.id)}
            rows={data.repairs}
            columns={[
              { title: 'When', cell: (row) => <When at={row.created_at} /> },
              { title: 'Account', cell: (row) => <AccountLink id={row.account_id} label={row.owner_id} /> },
              { title: 'State', cell: (row) => <State value={row.state} /> },
              { title: 'Change', amount: (row) => row.change },
              { title: 'Reason', wide: true, cell: (row) => <span class="break">{row.reason}</span> },
              { title: 'By', cell: (row) => <span class="break">{row.made_by}</span> },
              { title: 'Wallet', wide: true, cell: (row) => <Changes before={row.before} after={row.after} /> },
            ]}
          />
        )}
      </Card>
      <Card title="Parts of the accounts" flush>
        <Table
          caption="Parts of the accounts"
          keyOf={({ shard }) => String(shard)}
          rows={data.shards}
          columns={[
            { title: 'Part', right: true, cell: (row) => row.shard },
            {
              title: 'State',
              cell: (row) => (
                <Badge tone={!row.compared ? 'warn' : row.drifting_accounts > 0 ? 'bad' : 'good'}>
                  {!row.compared ? 'not compared' : row.drifting_accounts > 0 ? 'drifts' : 'agrees'}
                </Badge>
              ),
            },
            { title: 'Wallets', right: true, cell: (row) => count(row.wallets, language) },
            { title: 'In wallets', amount: (row) => row.wallet },
            { title: 'In balances', amount: (row) => row.settled },
            { title: 'Not stored yet', amount: (row) => row.streamed },
            { title: 'Held', amount: (row) => row.held },
            { title: 'Drift', amount: (row) => row.drift },
            { title: 'Compared', cell: (row) => <When at={row.checked_at} /> },
          ]}
        />
      </Card>
    </>
  );
}
