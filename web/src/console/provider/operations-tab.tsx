import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { type Cost, mostOf, operationCost } from '../../cost.ts';
import { Button, Empty, FailureNote, Note, say } from '../../design/index.ts';
import { Card, Check, Table } from '../../design/more.ts';
import { api } from '../../session.ts';
import { Foretold, writtenLast } from './foretell.tsx';
import { AskBeforeLeaving } from './leaving.tsx';
import { OpenApiImport } from './openapi-import.tsx';
import { OperationDialog } from './operation-dialog.tsx';
import { type Operation, operationName } from './operation-draft.ts';
import type { TabProps } from './service-frame.tsx';
import { usdCost } from './service-words.tsx';

type Row = { readonly operation: Operation; readonly at: number };
type Editing = { readonly at: number | null } | null;

/**
 * `/console/services/{id}/operations`: how the service is called. Changes are saved together, because the rules for prices concern
 * all operations.
 */
export function OperationsTab({ service, show }: TabProps) {
  // A change applies to the last written version, even if that is only announced.
  const last = writtenLast(service);
  const isMcp = service.protocol === 'mcp';
  const [draft, setDraft] = useState<readonly Operation[] | null>(null);
  const [only, setOnly] = useState<boolean | null>(null);
  const [editing, setEditing] = useState<Editing>(null);
  const [importing, setImporting] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const operations = draft ?? last.operations;
  const isOnly = only ?? last.onlyOperations;
  const listing = { price: last.price, max_price: last.maxPrice };
  const isChanged = draft !== null || isOnly !== last.onlyOperations;
  const [costlier] = isOnly ? [] : operations.filter((operation) => costsMore(operation, listing));
  const discard = (): void => {
    setDraft(null);
    setOnly(null);
    setFailure(null);
  };
  const save = async (): Promise<void> => {
    setBusy(true);
    setFailure(null);
    const params = { path: { id: service.id } };
    const only = isOnly === last.onlyOperations ? {} : { only_operations: isOnly };
    try {
      const changed = await dataOf(
        draft === null
          ? api.value.PATCH('/api/v1/services/{id}', { params, body: only })
          : api.value.PUT('/api/v1/services/{id}/operations', {
              params,
              body: { operations: draft as Schemas['ServiceOperations']['operations'], ...only },
            }),
      );
      discard();
      show(changed);
      say(changed.next_price === undefined ? 'Saved.' : 'Saved. The new prices are announced.');
    } catch (error) {
      setFailure(error);
    }
    setBusy(false);
  };
  const edited = editing?.at == null ? null : (operations[editing.at] ?? null);
  const what = isMcp ? 'tool' : 'operation';
  const refuse = `Refuse calls that match no ${what}`;
  return (
    <>
      <AskBeforeLeaving when={isChanged && !busy} />
      {isChanged && (
        <div class="unsaved">
          <span>Not saved yet.</span>
          <Button kind="quiet" small onClick={discard}>
            Discard
          </Button>
          <Button kind="primary" small busy={busy} disabled={costlier !== undefined} onClick={() => void save()}>
            Save {what}s
          </Button>
        </div>
      )}
      {costlier !== undefined && (
        <Note tone="warn">
          <span>
            {operationName(costlier)} costs more than the listing. Then calls that match no {what} must be refused:
            otherwise another spelling of this one would cost less.
          </span>
          <Button small onClick={() => setOnly(true)}>
            {refuse}
          </Button>
        </Note>
      )}
      {isChanged && costlier === undefined && (
        <Foretold service={service} wanted={{ ...last, operations, onlyOperations: isOnly }} />
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
              {
                title: 'Summary',
                wide: true,
                bare: true,
                cell: ({ operation }) => <span class="wide-cell">{operation.summary}</span>,
              },
              ...(isMcp
                ? []
                : [
                    {
                      title: 'Schemas',
                      cell: ({ operation }: Row) => <span class="faint">{toldOf(operation)}</span>,
                    },
                  ]),
              {
                title: 'Price',
                right: true,
                cell: ({ operation }) => <Price operation={operation} service={service} />,
              },
              {
                title: 'Actions',
                bare: true,
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
            label={refuse}
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
      {editing !== null && (
        <OperationDialog
          operation={edited}
          isMcp={isMcp}
          listing={listing}
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

/** What a call costs or will cost; below it, if different, what it costs now. */
function Price({ operation, service }: { readonly operation: Operation; readonly service: TabProps['service'] }) {
  const last = writtenLast(service);
  const price = usdCost(operationCost(operation, { price: last.price, max_price: last.maxPrice }));
  const present = (service.operations ?? []).find((other) => operationName(other) === operationName(operation));
  const presentPrice = present === undefined ? null : usdCost(operationCost(present, service));
  return (
    <span class="price-lines">
      {operation.price === undefined && operation.max_price === undefined ? (
        <span class="faint" title="The price of the listing">
          {price}
        </span>
      ) : (
        <strong>{price}</strong>
      )}
      {presentPrice !== price && (
        <span class="faint small nowrap">{presentPrice === null ? 'not yet' : `now ${presentPrice}`}</span>
      )}
    </span>
  );
}

function costsMore(operation: Operation, listing: Cost): boolean {
  const cost = operationCost(operation, listing);
  return cost.price > listing.price || mostOf(cost) > mostOf(listing);
}

const toldOf = ({ input, output, example }: Operation): string =>
  [input && 'request', output && 'response', example && 'example'].filter(Boolean).join(', ') || '–';
