import { useMemo, useState } from 'preact/hooks';
import type { Schemas } from '../api/client.ts';
import { LinkButton } from '../design/index.ts';
import { Code } from '../design/service.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { jsonText } from './service-quote.ts';
import { ServiceSchema } from './service-schema.tsx';

type Operation = Schemas['PricedOperation'];
/** With more operations than this there is a search field. */
const MANY = 12;

/** How the service can be called. Each operation is a `details` element, so it opens even without scripts. */
export function ServiceOperations({
  service,
  chosen,
  onTry,
}: {
  readonly service: Schemas['CallableService'];
  readonly chosen: number;
  readonly onTry: (at: number) => void;
}) {
  const { t } = useI18n();
  const [words, setWords] = useState('');
  const written = useMemo(() => writtenAtOnce(service.operations), [service]);
  const isMcp = service.protocol === 'mcp';
  const title = t(isMcp ? 'service.tools' : 'service.operations');
  const shown = service.operations
    .map((operation, at) => ({ operation, at }))
    .filter(({ operation }) => matches(operation, words));
  return (
    <section class="stack" aria-labelledby="operations">
      <div class="row-between">
        <h2 id="operations">
          {title} <span class="faint number">{service.operations.length}</span>
        </h2>
        {service.operations.length > MANY && (
          <input
            class="input service-find"
            type="search"
            aria-label={t('service.findOperation')}
            placeholder={t('service.findOperation')}
            value={words}
            onInput={(event) => setWords(event.currentTarget.value)}
          />
        )}
      </div>
      {shown.length === 0 && <p class="soft">{t('service.noOperation')}</p>}
      <ul class="card operations">
        {shown.map(({ operation, at }) => (
          <OperationRow
            key={at}
            operation={operation}
            at={at}
            isWritten={at < written}
            isOpen={at === 0 && service.operations.length <= 3}
            isChosen={at === chosen}
            onTry={() => onTry(at)}
          />
        ))}
      </ul>
    </section>
  );
}

/**
 * Maximum characters of schemas and examples in the first view, because the gateway renders pages on the thread that serves calls.
 */
const MAX_WRITTEN = 6_000;

/** How many operations are complete in the first view. The others are completed when they are opened. */
function writtenAtOnce(operations: readonly Operation[]): number {
  let sum = 0;
  const beyond = operations.findIndex((operation) => {
    sum += JSON.stringify(operation).length;
    return sum > MAX_WRITTEN;
  });
  return beyond === -1 ? operations.length : beyond;
}

function OperationRow(props: {
  readonly operation: Operation;
  readonly at: number;
  readonly isWritten: boolean;
  readonly isOpen: boolean;
  readonly isChosen: boolean;
  readonly onTry: () => void;
}) {
  const { t } = useI18n();
  const { operation, at, isWritten, isOpen, isChosen } = props;
  const [wasOpened, setWasOpened] = useState(false);
  const tryIt = (
    <LinkButton small kind={isChosen ? 'plain' : 'primary'} href="#try" onClick={props.onTry}>
      {t('service.tryThis')}
      <span class="visually-hidden"> {nameOf(operation)}</span>
    </LinkButton>
  );
  return (
    <li id={`operation-${at + 1}`}>
      <details open={isOpen} onToggle={(event) => event.currentTarget.open && setWasOpened(true)}>
        <summary class="operation-head">
          <OperationName operation={operation} />
          <span class="operation-summary soft">{operation.summary}</span>
          <span class="operation-price number">{operation.price_label}</span>
        </summary>
        {(isWritten || wasOpened) && <OperationBody operation={operation} tryIt={tryIt} />}
      </details>
    </li>
  );
}

function OperationName({ operation }: { readonly operation: Operation }) {
  if (operation.tool !== undefined) return <code class="operation-path break">{operation.tool}</code>;
  return (
    <span class="operation-name">
      <span class={`method method-${(operation.method ?? 'GET').toLowerCase()}`}>{operation.method}</span>
      <code class="operation-path break">{operation.path}</code>
    </span>
  );
}

/** `GET /users/{id}`, or the name of a tool. */
export const nameOf = ({ tool, method, path }: Operation): string => tool ?? `${method} ${path}`;

function OperationBody({ operation, tryIt }: { readonly operation: Operation; readonly tryIt: preact.ComponentChild }) {
  const { t } = useI18n();
  const { input, output, example } = operation;
  const request = example === undefined ? [] : exampleRequest(example);
  return (
    <div class="operation-body">
      {input === undefined && output === undefined && example === undefined && (
        <p class="soft small">{t(operation.tool === undefined ? 'service.noSchemas' : 'service.toolSchemas')}</p>
      )}
      <div class="operation-columns">
        {input !== undefined && <ServiceSchema title={t('service.input')} schema={input} />}
        {output !== undefined && <ServiceSchema title={t('service.output')} schema={output} />}
      </div>
      <div class="operation-columns">
        {request.map(([name, text]) => (
          <div key={name} class="stack-tight">
            <h3 class="operation-label">{t(name === 'query' ? 'service.exampleQuery' : 'service.exampleBody')}</h3>
            <Code label={name} text={text} wrap />
          </div>
        ))}
        {example?.response !== undefined && (
          <div class="stack-tight">
            <h3 class="operation-label">{t('service.exampleResponse')}</h3>
            <Code label={t('service.exampleResponse')} text={jsonText(example.response)} wrap />
          </div>
        )}
      </div>
      <div>{tryIt}</div>
    </div>
  );
}

const exampleRequest = ({
  query,
  body,
}: NonNullable<Operation['example']>): (readonly ['query' | 'body', string])[] => [
  ...(query === undefined ? [] : [['query', jsonText(query)] as const]),
  ...(body === undefined ? [] : [['body', jsonText(body)] as const]),
];

function matches({ tool = '', method = '', path = '', summary = '' }: Operation, words: string): boolean {
  const text = `${tool} ${method} ${path} ${summary}`.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
