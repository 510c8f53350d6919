import { useEffect, useState } from 'preact/hooks';
import { useAddress } from '../address.tsx';
import type { Schemas } from '../api/client.ts';
import { Skeleton } from '../design/index.ts';
import { Card, Check, Code, Select, Tabs } from '../design/service.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { lazy } from '../lazy.tsx';
import { session } from '../session.ts';
import { nameOf } from './service-operations.tsx';
import { type Sample, type SnippetKind, type SnippetOptions, snippetsOf } from './service-snippets.ts';

// Trying a call needs scripts, so the gateway does not render this, and it loads after the rest is shown.
const TryIt = lazy(() => import('./try-it.tsx'), TryWaiting);

type Props = {
  readonly service: Schemas['CallableService'];
  readonly chosen: number;
  readonly onChoose: (at: number) => void;
};

/** One operation, as a form that calls it and as code. */
export function ServiceCall({ service, chosen, onChoose }: Props) {
  const { t } = useI18n();
  const [isLive, setIsLive] = useState(false);
  useEffect(() => setIsLive(true), []);
  const [typed, setTyped] = useState<Sample | null>(null);
  const operation = service.operations[chosen] ?? null;
  return (
    <section class="stack" id="try" aria-labelledby="try-title">
      <div class="row-between">
        <h2 id="try-title">{t('service.callIt')}</h2>
        {service.operations.length > 1 && (
          <div class="service-choice">
            <Select
              label={t(service.protocol === 'mcp' ? 'service.tool' : 'service.operation')}
              value={String(chosen)}
              onChange={(event) => onChoose(Number(event.currentTarget.value))}
              options={service.operations.map(
                (its, at) => [String(at), `${nameOf(its)} · ${its.price_label}`] as const,
              )}
            />
          </div>
        )}
      </div>
      <div class="service-call">
        <Card title={t('try.title')}>
          {isLive ? (
            <TryIt key={chosen} service={service} operation={operation} onTyped={setTyped} />
          ) : (
            <WithoutScripts />
          )}
        </Card>
        <Card title={t('service.code')}>
          <Snippets service={service} operation={operation} typed={typed} />
        </Card>
      </div>
    </section>
  );
}

/** Shown instead of the form while its file is loading. */
function TryWaiting() {
  return (
    <div class="try-waiting">
      <Skeleton lines={4} />
    </div>
  );
}

/** What the gateway renders instead of the form. */
function WithoutScripts() {
  const { t } = useI18n();
  return (
    <div class="try-waiting">
      <noscript>{t('try.noScript')}</noscript>
      <Skeleton lines={4} />
    </div>
  );
}

type SnippetsProps = Pick<SnippetOptions, 'service' | 'operation'> & { readonly typed: Sample | null };

function Snippets({ service, operation, typed }: SnippetsProps) {
  const { t } = useI18n();
  const { origin } = useAddress();
  const [kind, setKind] = useState<SnippetKind>(service.protocol === 'mcp' ? 'mcp' : 'curl');
  // The key that was asked for: another one that signs in later is not shown without being asked for.
  const [keyShown, setKeyShown] = useState<string | null>(null);
  const key = session.value?.key ?? null;
  const withKey = key !== null && keyShown === key;
  const snippets = snippetsOf({ origin, service, operation, typed, key: withKey ? key : null });
  const shown = snippets.find((snippet) => snippet.kind === kind) ?? snippets[0];
  if (shown === undefined) return null;
  const names: Readonly<Record<SnippetKind, string>> = {
    curl: 'curl',
    javascript: 'JavaScript',
    python: 'Python',
    openai: 'OpenAI SDK',
    anthropic: 'Anthropic SDK',
    mcp: 'MCP',
    agent: service.protocol === 'mcp' ? t('service.viaGateway') : 'MCP',
  };
  return (
    <div class="stack snippets">
      {typeof document === 'undefined' && (
        // The tabs are hidden then, so the first program needs its name.
        <noscript>
          <h3>{names[shown.kind]}</h3>
        </noscript>
      )}
      <Tabs
        label={t('service.code')}
        tabs={snippets.map((snippet) => [snippet.kind, names[snippet.kind]] as const)}
        chosen={shown.kind}
        onChoose={(chosen) => setKind(chosen as SnippetKind)}
      >
        <Code label={names[shown.kind]} text={shown.text} />
      </Tabs>
      <p class="faint small">
        {t(
          shown.kind === 'mcp'
            ? 'service.codeMcp'
            : shown.kind === 'agent'
              ? 'service.codeAgent'
              : withKey
                ? 'service.codeKey'
                : 'service.codeVariable',
        )}
      </p>
      {key !== null && (
        <Check
          label={t('service.putKey')}
          checked={withKey}
          onChange={(event) => setKeyShown(event.currentTarget.checked ? key : null)}
        />
      )}
      {typeof document === 'undefined' && (
        // Tabs need scripts: without them the other programs are shown one below the other.
        <noscript>
          {snippets
            .filter((snippet) => snippet !== shown)
            .map((snippet) => (
              <div key={snippet.kind}>
                <h3>{names[snippet.kind]}</h3>
                <pre>
                  <code>{snippet.text}</code>
                </pre>
              </div>
            ))}
        </noscript>
      )}
    </div>
  );
}
