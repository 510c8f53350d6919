import { Badge, Button } from '../../design/index.ts';
import { ago, count, moment, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { session } from '../../session.ts';
import { callsOfKey } from '../buyer/usage.ts';
import { shortId } from '../shared/ids.tsx';
import { BudgetLine } from './budget-line.tsx';
import { KeyStatus, KeyTimes } from './key-status.tsx';
import type { Key, KeyNode } from './tree.ts';
import type { UsageOf } from './use-usage.ts';

/** What can be done with a key. */
export type ActKind = 'rotate' | 'revoke' | 'change';
export type OnAct = (kind: ActKind, node: KeyNode) => void;

const ROLES = ['buyer', 'provider', 'admin'] as const;

/** A key: what it is, what it may spend, and what can be done with it. */
export function KeyRow({
  of: node,
  usage,
  onAct,
}: {
  readonly of: KeyNode;
  readonly usage: ReturnType<UsageOf>;
  readonly onAct: OnAct;
}) {
  const { language } = useI18n();
  const now = Date.now();
  const { key } = node;
  const isActive = key.status === 'active';
  return (
    <div class="key-row">
      <div class="key-about">
        <p class="key-id">
          {key.label !== undefined && <strong class="break">{key.label}</strong>}
          <code class={key.label === undefined ? 'break' : 'break faint'}>{key.key_id}</code>
          <KeyStatus of={node} now={now} />
          {key.role !== 'buyer' && <Badge>{key.role}</Badge>}
          {key.key_id === session.value?.me.key_id && <Badge tone="accent">This key</Badge>}
          {key.by_operator && <Badge>By the operator</Badge>}
        </p>
        {isActive && key.budget !== undefined && (
          <BudgetLine budget={key.budget} leftAbove={node.leftAbove} language={language} now={now} />
        )}
        <ul class="key-facts small soft">
          {isActive && <Limits of={node} names={usage?.names} language={language} now={now} />}
          <li title={moment(key.created_at, language)}>made {ago(key.created_at, language, now)}</li>
          {key.last_used_at === null ? (
            <li>no call went through yet</li>
          ) : (
            <li title={moment(key.last_used_at, language)}>last call {ago(key.last_used_at, language, now)}</li>
          )}
          {usage !== null && (
            <li>
              {usage.calls === 0
                ? 'no calls in 30 days'
                : `${count(usage.calls, language)} ${usage.calls === 1 ? 'call' : 'calls'} for ${money(usage.spent, language)} as charged in 30 days`}
            </li>
          )}
          <Links of={key} />
        </ul>
      </div>
      <Acts of={node} onAct={onAct} />
    </div>
  );
}

/** Maximum services of a key that are named. */
const NAMED = 3;

function Limits({
  of: node,
  names,
  language,
  now,
}: {
  readonly of: KeyNode;
  readonly names: ReadonlyMap<string, string> | undefined;
  readonly language: string;
  readonly now: number;
}) {
  const { key } = node;
  const services = key.services?.map((id) => names?.get(id));
  return (
    <>
      {key.parent_key_id !== undefined && key.budget === undefined && <li>no budget of its own</li>}
      <li>{count(key.rate_limit, language)} requests a minute</li>
      {key.max_price !== undefined && <li>at most {money(key.max_price, language)} a call</li>}
      {key.services !== undefined && (
        <li>
          {services !== undefined && services.length <= NAMED && services.every((name) => name !== undefined)
            ? `${services.join(', ')} only`
            : `${count(key.services.length, language)} ${key.services.length === 1 ? 'service' : 'services'} only`}
        </li>
      )}
      <KeyTimes of={node} language={language} now={now} />
    </>
  );
}

const spokenName = ({ key_id: id, label }: Key): string => (label === undefined ? id : `${label} ${shortId(id)}`);

/** Links to the key's calls and spending, if the console has pages for them. */
function Links({ of: key }: { readonly of: Key }) {
  const role = session.value?.me.role;
  if (role === undefined || role === 'provider') return null;
  return (
    <li class="row-tight nowrap">
      <a href={callsOfKey(key.key_id)} aria-label={`Calls of ${spokenName(key)}`}>
        Calls
      </a>
      {role === 'buyer' && (
        <>
          <span aria-hidden="true">·</span>
          <a href={`/console?key=${key.key_id}`} aria-label={`Spending of ${spokenName(key)}`}>
            Spending
          </a>
        </>
      )}
    </li>
  );
}

function Acts({ of: node, onAct }: { readonly of: KeyNode; readonly onAct: OnAct }) {
  const { key } = node;
  const me = session.value?.me;
  if (me === undefined || key.status === 'revoked') return null;
  if (ROLES.indexOf(key.role) > ROLES.indexOf(me.role)) return <p class="small faint">Needs a {key.role} key</p>;
  if (key.key_id === me.key_id && me.parent_key_id !== undefined) {
    return <p class="small faint">The keys above it change it</p>;
  }
  const name = spokenName(key);
  return (
    <div class="key-acts">
      <Button small aria-label={`Change ${name}`} onClick={() => onAct('change', node)}>
        Change
      </Button>
      <Button small aria-label={`Rotate ${name}`} onClick={() => onAct('rotate', node)}>
        Rotate
      </Button>
      <Button small kind="danger" aria-label={`Revoke ${name}`} onClick={() => onAct('revoke', node)}>
        Revoke
      </Button>
    </div>
  );
}
