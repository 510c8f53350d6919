import { useState } from 'preact/hooks';
import { Badge } from '../design/index.ts';
import { Code } from '../design/service.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { type SchemaRow, schemaRows } from './service-schema-rows.ts';

/** A JSON Schema, readable: nested parts open on demand. The whole schema as JSON is in one more element. */
export function ServiceSchema({ title, schema }: { readonly title: string; readonly schema: object }) {
  const { t } = useI18n();
  const [isWhole, setIsWhole] = useState(false);
  const { rows, isCut } = schemaRows(schema);
  return (
    <div class="stack-tight">
      <h3 class="operation-label">{title}</h3>
      {rows.length > 0 ? <Rows rows={rows} depth={0} /> : <p class="soft small">{t('service.schemaAny')}</p>}
      {isCut && <p class="faint small">{t('service.schemaCut')}</p>}
      <details class="disclosure needs-script" onToggle={(event) => setIsWhole(event.currentTarget.open)}>
        <summary>{t('service.schemaJson')}</summary>
        {isWhole && <Code label={title} text={JSON.stringify(schema, null, 2)} />}
      </details>
    </div>
  );
}

/** The first two levels (location and name of a value) are open. */
const OPEN_DEPTH = 1;

function Rows({ rows, depth }: { readonly rows: readonly SchemaRow[]; readonly depth: number }) {
  return (
    <ul class={depth === 0 ? 'schema' : 'schema schema-nested'}>
      {rows.map((row, at) => (
        <li key={`${row.name} ${at}`}>
          {row.rows.length === 0 ? (
            <div class="schema-row">
              <Row row={row} />
            </div>
          ) : (
            <details open={depth < OPEN_DEPTH}>
              <summary class="schema-row">
                <Row row={row} />
              </summary>
              <Rows rows={row.rows} depth={depth + 1} />
            </details>
          )}
        </li>
      ))}
    </ul>
  );
}

function Row({ row }: { readonly row: SchemaRow }) {
  const { t } = useI18n();
  return (
    <>
      {row.name !== '' && <code class="schema-name break">{row.name}</code>}
      {row.type !== '' && <span class="schema-type">{row.type}</span>}
      {row.required && <Badge tone="warn">{t('service.required')}</Badge>}
      {row.description !== '' && (
        <span class="schema-text break" dir="auto">
          {row.description}
        </span>
      )}
      {row.limits.map(([name, value]) => (
        <span key={name} class="schema-limit break">
          {name} <code>{value}</code>
        </span>
      ))}
    </>
  );
}
