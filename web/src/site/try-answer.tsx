import { useHref } from '../address.tsx';
import type { CallBody } from '../calls/body.ts';
import type { CallResponse, CallState } from '../calls/send.ts';
import { STATUS_TEXTS } from '../calls/status-texts.ts';
import { Badge, type Tone } from '../design/index.ts';
import { CopyButton } from '../design/service.ts';
import { count, duration, money } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { TryAdvice } from './try-advice.tsx';
import { useFinalCost } from './use-final-cost.ts';

/** The outcome of a call: its status, its cost, what is left, and its body as it arrives. */
export function TryAnswer(props: Parameters<typeof TryAdvice>[0]) {
  const { t, language } = useI18n();
  const { state } = props;
  const { phase, response, body } = state;
  return (
    <section class="try-answer" aria-label={t('try.answer')}>
      <div class="try-status" role="status">
        {response === null ? (
          <Badge tone={phase === 'waiting' ? 'info' : 'warn'}>{t(`try.phase.${phase}`)}</Badge>
        ) : (
          <>
            <Badge tone={toneOf(response.status)}>
              {response.status === 0 ? t('try.redirect') : `${response.status} ${STATUS_TEXTS[response.status] ?? ''}`}
            </Badge>
            {phase !== 'done' && <Badge tone="info">{t(`try.phase.${phase}`)}</Badge>}
          </>
        )}
        {phase !== 'waiting' && <span class="soft small number">{duration(state.ms, language)}</span>}
        {body !== null && phase === 'done' && (
          <span class="soft small number">{t('try.bytes', { count: body.bytes })}</span>
        )}
      </div>
      {response !== null && response.status !== 0 && <Money state={state} response={response} />}
      <TryAdvice {...props} />
      {response !== null && response.status === 0 && <p class="small soft">{t('try.redirectText')}</p>}
      {body !== null && <Body body={body} phase={phase} />}
      {response !== null && response.headers.length > 0 && <Headers headers={response.headers} />}
    </section>
  );
}

function Money({ state, response }: { readonly state: CallState; readonly response: CallResponse }) {
  const { t, language } = useI18n();
  const href = useHref();
  const { amount, isHeld, usageId, freeLeft } = response;
  const { cost, isOpen } = useFinalCost(state);
  const balance = cost === null ? response.balance : cost.balance;
  const held = money(Number(amount), language);
  return (
    <dl class="try-money" aria-live="polite">
      <div>
        <dt>{t(isHeld && cost === null ? 'try.held' : 'try.paid')}</dt>
        <dd>{amount === null ? t('try.nothing') : cost === null ? held : money(cost.amount, language)}</dd>
        {response.isFreeTier && (
          <dd class="faint">{freeLeft === null ? t('try.wasFree') : t('try.wasFreeLeft', { count: freeLeft })}</dd>
        )}
        {isHeld && (
          <dd class="faint">
            {cost === null ? t(isOpen ? 'try.heldText' : 'try.heldRecord') : t('try.ofMost', { price: held })}
          </dd>
        )}
      </div>
      {balance !== null && (
        <div>
          <dt>{t('try.left')}</dt>
          <dd>{money(Number(balance), language)}</dd>
        </div>
      )}
      {usageId !== null && (
        <div class="try-usage">
          <dt>{t('try.record')}</dt>
          <dd>
            <a href={href(`/console/calls/${encodeURIComponent(usageId)}`)}>{t('try.recordOpen')}</a>
          </dd>
        </div>
      )}
    </dl>
  );
}

/** Always text: a service's response never becomes part of the page. */
function Body({ body, phase }: { readonly body: CallBody; readonly phase: CallState['phase'] }) {
  const { t, language } = useI18n();
  const size = t('try.bytes', { count: body.bytes });
  if (body.kind === 'binary') {
    return <p class="small soft">{t('try.binary', { type: body.mediaType || '?', size })}</p>;
  }
  if (body.text === '') {
    return phase === 'done' ? <p class="small soft">{t('try.emptyBody')}</p> : null;
  }
  return (
    <div class="stack-tight">
      {body.kind === 'events' ? (
        <ol class="try-events" aria-label={t('try.events', { count: body.events.length })}>
          {body.events.map((event, at) => (
            <li key={at}>
              <span class="try-event-name">{event.name === '' ? 'message' : event.name}</span>
              <code class="break">{event.data}</code>
            </li>
          ))}
        </ol>
      ) : (
        <div class="code code-wrap try-body">
          <section aria-label={t('try.responseBody')}>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
            <pre tabIndex={0}>
              <code>{body.text}</code>
            </pre>
          </section>
          <CopyButton text={body.text} />
        </div>
      )}
      {body.isCut && <p class="small soft">{t('try.cut', { size: count(body.bytes, language) })}</p>}
    </div>
  );
}

/** Headers that come with every answer of the gateway say nothing about this one. */
const ORDINARY =
  /^(access-control-.*|content-security-policy|x-content-type-options|connection|date|via|vary|keep-alive)$/;

function Headers({ headers }: { readonly headers: CallResponse['headers'] }) {
  const { t } = useI18n();
  const shown = headers.filter(([name]) => !ORDINARY.test(name));
  return (
    <details class="disclosure">
      <summary>{t('try.responseHeaders')}</summary>
      <dl class="try-headers">
        {shown.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="break">{value}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function toneOf(status: number): Tone {
  if (status === 0 || (status >= 300 && status < 400)) return 'info';
  if (status < 300) return 'good';
  return status < 500 ? 'warn' : 'bad';
}
