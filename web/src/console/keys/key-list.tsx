import { KeyRow, type OnAct } from './key-row.tsx';
import { countOf, type KeyNode } from './tree.ts';
import type { UsageOf } from './use-usage.ts';

/** Keys with those below them. Revoked ones are folded away, because nothing can be done with them. */
export function KeyList({
  nodes,
  label,
  usageOf,
  onAct,
}: {
  readonly nodes: readonly KeyNode[];
  /** What it lists, for screen readers. */
  readonly label: string;
  readonly usageOf: UsageOf;
  readonly onAct: OnAct;
}) {
  const active = nodes.filter(({ key }) => key.status === 'active');
  const revoked = nodes.filter(({ key }) => key.status === 'revoked');
  const folded = countOf(revoked);
  return (
    <>
      {active.length > 0 && <Branch nodes={active} label={label} usageOf={usageOf} onAct={onAct} />}
      {folded > 0 && (
        <details class="key-revoked">
          <summary>{folded === 1 ? 'One revoked key' : `${folded} revoked keys`}</summary>
          <Branch nodes={revoked} label={`${label}, revoked`} usageOf={usageOf} onAct={onAct} isFlat />
        </details>
      )}
    </>
  );
}

/** @param isFlat nothing below is folded, because all of it is revoked */
function Branch({
  nodes,
  label,
  usageOf,
  onAct,
  isFlat = false,
}: Parameters<typeof KeyList>[0] & { readonly isFlat?: boolean }) {
  const List = isFlat ? Branch : KeyList;
  return (
    <ul class="key-list" aria-label={label}>
      {nodes.map((node) => (
        <li key={node.key.key_id}>
          <KeyRow of={node} usage={usageOf(node.key)} onAct={onAct} />
          {node.below.length > 0 && (
            <div class="key-below">
              <List
                nodes={node.below}
                label={`Keys below ${node.key.label ?? node.key.key_id}`}
                usageOf={usageOf}
                onAct={onAct}
                {...(isFlat ? { isFlat } : {})}
              />
            </div>
          )}
        </li>
      ))}
    </ul>
  );
}
