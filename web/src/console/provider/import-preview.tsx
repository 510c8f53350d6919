import { useEffect, useRef } from 'preact/hooks';
import type { Schemas } from '../../api/client.ts';
import { type Cost, comingCost, operationCost } from '../../cost.ts';
import { Badge, Note } from '../../design/index.ts';
import { operationName } from './operation-draft.ts';
import { NextPrice, usdCost } from './service-words.tsx';

type Imported = Schemas['ImportedOperations'];
type Line = {
  readonly name: string;
  readonly summary: string;
  readonly cost: Cost;
  readonly is: 'new' | 'stays' | 'goes';
};

/** The result of importing a document: each operation, what is left out, and what differs. */
export function ImportPreview({
  imported,
  service,
}: {
  readonly imported: Imported;
  readonly service: Schemas['Service'];
}) {
  const lines = linesOf(imported, service);
  const count = (is: Line['is']): number => lines.filter((line) => line.is === is).length;
  const next = imported.service.next_price;
  const first = useRef<HTMLParagraphElement>(null);
  useEffect(() => first.current?.focus(), []);
  return (
    <>
      <p ref={first} tabIndex={-1}>
        <strong>
          {imported.operations} {imported.operations === 1 ? 'operation' : 'operations'}
        </strong>{' '}
        would be listed{lines.length > count('new') && `: ${count('new')} new, ${count('stays')} as before`}.
        {count('goes') > 0 && ` ${count('goes')} of the present ones would go.`}
      </p>
      {next !== undefined && (
        <Note tone="warn">
          <span>
            Some calls would cost more, so prices are announced first: <NextPrice service={imported.service} />.
          </span>
        </Note>
      )}
      <ul class="import-lines" aria-label="Operations after the import">
        {lines.map(({ name, summary, cost, is }) => (
          <li key={name}>
            <Badge tone={is === 'new' ? 'good' : is === 'goes' ? 'bad' : 'plain'}>{is}</Badge>
            <span class="two-lines">
              <code class="break">{name}</code>
              <span class="small soft break">{summary}</span>
            </span>
            <span class="number small">{usdCost(cost)}</span>
          </li>
        ))}
      </ul>
      <Told
        title={`Not imported (${imported.skipped_total})`}
        rows={imported.skipped.map((of) => ({ ...of, text: of.reason }))}
      />
      <Told
        title={`Different from the document (${imported.changed.length})`}
        rows={imported.changed.map((of) => ({ ...of, text: of.note }))}
      />
    </>
  );
}

function Told({
  title,
  rows,
}: {
  readonly title: string;
  readonly rows: readonly { readonly method: string; readonly path: string; readonly text: string }[];
}) {
  if (rows.length === 0) return null;
  return (
    <details class="more-fields" open={rows.length <= 5}>
      <summary>{title}</summary>
      <ul class="stack-tight small">
        {rows.map(({ method, path, text }) => (
          <li key={`${method} ${path} ${text}`} class="break">
            <code>
              {method} {path}
            </code>
            : {text}
          </li>
        ))}
      </ul>
    </details>
  );
}

function linesOf({ service: after }: Imported, before: Schemas['Service']): Line[] {
  const old = new Map((before.operations ?? []).map((operation) => [operationName(operation), operation]));
  const summaries = new Map(
    [...(before.operations ?? []), ...(after.operations ?? []), ...(after.announced_operations ?? [])].map(
      (operation) => [operationName(operation), operation.summary ?? ''],
    ),
  );
  const listing = comingCost(after);
  const coming = (after.announced_operations ?? after.operations ?? []).map((operation) => ({
    name: operationName(operation),
    cost: operationCost(operation, listing),
  }));
  const names = new Set(coming.map(({ name }) => name));
  return [
    ...coming.map(({ name, cost }) => ({
      name,
      cost,
      summary: summaries.get(name) ?? '',
      is: old.has(name) ? ('stays' as const) : ('new' as const),
    })),
    ...[...old]
      .filter(([name]) => !names.has(name))
      .map(([name, operation]) => ({
        name,
        summary: operation.summary ?? '',
        is: 'goes' as const,
        cost: operationCost(operation, before),
      })),
  ];
}
