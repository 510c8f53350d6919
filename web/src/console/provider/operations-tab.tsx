import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Button, Card, Check, Empty, FailureNote, Note, say, Table } from '../../design/index.ts';
import { api } from '../../session.ts';
import { OpenApiImport } from './openapi-import.tsx';
import { OperationDialog } from './operation-dialog.tsx';
import { type Operation, operationName } from './operation-draft.ts';
import type { TabProps } from './service-frame.tsx';
import { usd } from './service-words.tsx';

type Editing = { readonly at: number | null } | null;

/** `/console/services/{id}/operations`: how the service is called. Changes are saved together, because prices of operations are one rule. */
export function OperationsTab({ service, show }: TabProps) {
  const stored = service.operations ?? [];
  const isMcp = service.protocol === 'mcp';
  const [draft, setDraft] = useState<readonly Operation[] | null>(null);
  const [only, setOnly] = useState<boolean | null>(null);
  const [editing, setEditing] = useState<Editing>(null);
  const [importing, setImporting] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const operations = draft ?? stored;
  const isOnly = only ?? service.only_operations;
  const isChanged = draft !== null || isOnly !== service.only_operations;
  const discard = (): void => {
    setDraft(null);
    setOnly(null);
    setFailure(null);
  };
  const save = async (): Promise<void> => {
    setBusy(true);
    setFailure(null);
    const body = {
      ...(draft === null ? {} : { operations: draft.length === 0 ? null : draft }),
      ...(isOnly === service.only_operations ? {} : { only_operations: isOnly }),
    } as Schemas['ServiceChange'];
    try {
      const params = { path: { id: service.id } };
      const changed = await dataOf(api.value.PATCH('/api/v1/services/{id}', { params, body }));
      discard();
      show(changed);
      say(changed.next_price === undefined ? 'Operations saved.' : 'Saved. Prices that rise are announced first.');
    } catch (error) {
      setFailure(error);
    }
    setBusy(false);
  };
  const edited = editing?.at == null ? null : (operations[editing.at] ?? null);
  const what = isMcp ? 'tool' : 'operation';
  return (
    <>
      {isChanged && (
        <div class="unsaved">
          <span>Not saved yet.</span>
          <Button kind="quiet" small onClick={discard}>
            Discard
          </Button>
          <Button kind="primary" small busy={busy} onClick={() => void save()}>
            Save operations
          </Button>
        </div>
      )}
      {failure !== null && <FailureNote failure={failure} />}
      <Card
        flush
        title={isMcp ? 'Tools' : 'Operations'}
        actions={
          <>
            {!isMcp && (
              <Button disabled={isChanged} onClick={() => setImporting(true)}>
                Import OpenAPI
              </Button>
            )}
            <Button onClick={() => setEditing({ at: null })}>Add {isMcp ? 'a tool' : 'an operation'}</Button>
          </>
        }
      >
        {operations.length === 0 ? (
          <Empty title={`No ${what}s yet`}>
            {isMcp
              ? 'Name the tools of the server that have prices of their own.'
              : 'Tell agents the methods and paths of your API, with schemas and examples. Import an OpenAPI document, or add them by hand.'}
          </Empty>
        ) : (
          <Table
            caption={isMcp ? 'Tools' : 'Operations'}
            rows={operations.map((operation, at) => ({ operation, at }))}
            keyOf={({ operation }) => operationName(operation)}
            columns={[
              {
                title: isMcp ? 'Tool' : 'Call',
                cell: ({ operation }) => <code class="wide-cell">{operationName(operation)}</code>,
              },
              { title: 'Summary', cell: ({ operation }) => <span class="wide-cell">{operation.summary}</span> },
              { title: 'Schemas', cell: ({ operation }) => <span class="faint">{toldOf(operation)}</span> },
              {
                title: 'Price',
                right: true,
                cell: ({ operation: { price } }) =>
                  price === undefined ? (
                    <span class="faint" title="The price of the listing">
                      {usd(service.price)}
                    </span>
                  ) : (
                    <strong>{usd(price)}</strong>
                  ),
              },
              {
                title: 'Actions',
                right: true,
                cell: ({ operation, at }) => (
                  <span class="row-acts">
                    <Button
                      small
                      kind="quiet"
                      aria-label={`Edit ${operationName(operation)}`}
                      onClick={() => setEditing({ at })}
                    >
                      Edit
                    </Button>
                    <Button
                      small
                      kind="quiet"
                      aria-label={`Remove ${operationName(operation)}`}
                      onClick={() => setDraft(operations.filter((_, index) => index !== at))}
                    >
                      Remove
                    </Button>
                  </span>
                ),
              },
            ]}
          />
        )}
        <div class="card-foot stack-tight">
          <Check
            label={`Refuse calls that are none of these ${what}s`}
            checked={isOnly}
            disabled={operations.length === 0 && !isOnly}
            onChange={(event) => setOnly(event.currentTarget.checked)}
          />
          <span class="field-hint">
            Needed where {isMcp ? 'a tool' : 'an operation'} costs more than the listing: otherwise another spelling
            would be cheaper. Refused calls are free.
          </span>
        </div>
      </Card>
      {service.next_price?.operations !== undefined && (
        <Note>What is listed here counts now. The announced operations replace them then.</Note>
      )}
      {editing !== null && (
        <OperationDialog
          operation={edited}
          isMcp={isMcp}
          listingPrice={service.price}
          isTaken={(made) =>
            operations.some((other, at) => at !== editing.at && operationName(other) === operationName(made))
          }
          onDone={(made) => {
            const { at } = editing;
            setDraft(
              at === null ? [...operations, made] : operations.map((other, index) => (index === at ? made : other)),
            );
            setEditing(null);
          }}
          onClose={() => setEditing(null)}
        />
      )}
      {importing && <OpenApiImport service={service} show={show} onClose={() => setImporting(false)} />}
    </>
  );
}

const toldOf = ({ input, output, example }: Operation): string =>
  [input && 'request', output && 'response', example && 'example'].filter(Boolean).join(', ') || '–';
