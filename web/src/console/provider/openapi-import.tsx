import { useEffect, useRef, useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Button, FailureNote, Note, say } from '../../design/index.ts';
import { Check, Dialog, Field, TextArea, TextInput } from '../../design/more.ts';
import { api } from '../../session.ts';
import { writtenLast } from './foretell.tsx';
import { ImportPreview } from './import-preview.tsx';
import type { TabProps } from './service-frame.tsx';

/** The gateway's own bound. */
const MAX_BYTES = 2_097_152;

type Imported = Schemas['ImportedOperations'];
type Step =
  | { readonly kind: 'choose' }
  | { readonly kind: 'reading'; readonly what: string; readonly sinceMs: number }
  | { readonly kind: 'preview'; readonly imported: Imported };

/** Makes operations from an OpenAPI document: first shows the result, and only then changes the listing. */
export function OpenApiImport({
  service,
  show,
  onClose,
}: Pick<TabProps, 'service' | 'show'> & { readonly onClose: () => void }) {
  const [text, setText] = useState('');
  const [tag, setTag] = useState('');
  const before = writtenLast(service).onlyOperations;
  const [isOnly, setOnly] = useState(before);
  const [step, setStep] = useState<Step>({ kind: 'choose' });
  const [failure, setFailure] = useState<unknown>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const fault = documentFault(text);

  const ask = async (dryRun: boolean): Promise<Imported | null> => {
    const controller = new AbortController();
    running.current = controller;
    setFailure(null);
    setStep({
      kind: 'reading',
      what: dryRun ? 'Reading the document' : 'Replacing the operations',
      sinceMs: Date.now(),
    });
    try {
      return await dataOf(
        api.value.PUT('/api/v1/services/{id}/openapi', {
          params: {
            path: { id: service.id },
            query: {
              ...(dryRun && { dry_run: true }),
              ...(tag.trim() !== '' && { tag: tag.trim() }),
              ...(isOnly !== before && { only_operations: isOnly }),
            },
          },
          body: {} as Schemas['ProviderOpenApiDocument'],
          // Sent as written, so that numbers keep their digits.
          bodySerializer: () => text,
          headers: { 'Content-Type': 'application/json' },
          signal: controller.signal,
        }),
      );
    } catch (error) {
      if (!controller.signal.aborted) setFailure(error);
      return null;
    }
  };
  const preview = async (): Promise<void> => {
    const imported = await ask(true);
    setStep(imported === null ? { kind: 'choose' } : { kind: 'preview', imported });
  };
  const apply = async (shown: Imported): Promise<void> => {
    const imported = await ask(false);
    if (imported === null) return setStep({ kind: 'preview', imported: shown });
    show(imported.service);
    say(`${imported.operations} operations imported.`);
    onClose();
  };
  return (
    <Dialog
      title="Import an OpenAPI document"
      onClose={onClose}
      actions={
        step.kind === 'preview' ? (
          <>
            <Button onClick={() => setStep({ kind: 'choose' })}>Back</Button>
            {/* Not the button that 'Preview' was, which has the focus. */}
            <Button key="import" kind="primary" onClick={() => void apply(step.imported)}>
              {(service.operations ?? []).length === 0 ? 'Import' : 'Replace the operations'}
            </Button>
          </>
        ) : (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button
              kind="primary"
              busy={step.kind === 'reading'}
              disabled={text.trim() === '' || fault !== null}
              onClick={() => void preview()}
            >
              Preview
            </Button>
          </>
        )
      }
    >
      {failure !== null && <FailureNote failure={failure} />}
      {step.kind === 'reading' && <Reading what={step.what} sinceMs={step.sinceMs} />}
      {step.kind === 'preview' && <ImportPreview imported={step.imported} service={service} />}
      {step.kind === 'choose' && (
        <>
          <p class="small soft">
            OpenAPI 3.0 or 3.1 as JSON or YAML, up to 2 MiB. Nothing changes before you have seen what the import would
            do.
          </p>
          <Field label="File">
            {(ids) => (
              <input
                {...ids}
                class="input"
                type="file"
                accept=".json,.yaml,.yml,application/json,application/yaml"
                onChange={(event) => {
                  const [file] = event.currentTarget.files ?? [];
                  if (file === undefined) return;
                  // While the file is read, the preview of the earlier text is not shown.
                  setText('');
                  void file.text().then(setText);
                }}
              />
            )}
          </Field>
          <TextArea
            label="Or paste it here"
            mono
            rows={8}
            spellcheck={false}
            value={text}
            error={fault}
            placeholder={'{"openapi": "3.1.0", "info": …, "paths": …}'}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <TextInput
            label="Only operations with this tag (optional)"
            autocomplete="off"
            hint="For documents with more than 200 operations. Commas join several tags."
            value={tag}
            onInput={(event) => setTag(event.currentTarget.value)}
          />
          <Check
            label="Refuse calls that match no operation: needed when an operation costs more than the listing"
            checked={isOnly}
            onChange={(event) => setOnly(event.currentTarget.checked)}
          />
          <Note>
            <span>
              The operations of the document replace those of the listing. Where one has <code>x-price</code>, that is
              its price in US dollars.
            </span>
          </Note>
        </>
      )}
    </Dialog>
  );
}

/** A large document takes a few seconds, and the gateway gives up after five. */
function Reading({ what, sinceMs }: { readonly what: string; readonly sinceMs: number }) {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds(Math.floor((Date.now() - sinceMs) / 1_000)), 500);
    return () => clearInterval(timer);
  }, [sinceMs]);
  return (
    <div class="stack-tight" role="status">
      <span>{what}…</span>
      <progress class="progress" aria-label={what} />
      <span class="small faint">{seconds < 1 ? 'A large document takes a few seconds.' : `${seconds} s`}</span>
    </div>
  );
}

/** What can be said about a document before it is sent. */
function documentFault(text: string): string | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  if (new Blob([text]).size > MAX_BYTES) return 'It has more than 2 MiB. Leave out examples, or line breaks.';
  // Text that does not begin as JSON is YAML, which only the gateway reads.
  if (!/^[{[]/.test(trimmed)) return null;
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `Not valid JSON yet: ${error instanceof Error ? error.message : String(error)}.`;
  }
}
