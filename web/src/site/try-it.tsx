import './try.css';
import { effect, signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useHref } from '../address.tsx';
import type { Schemas } from '../api/client.ts';
import { type CallState, send } from '../calls/send.ts';
import { type Cost, costWords, isByUse, mostOf } from '../cost.ts';
import { Button, FailureNote, Note } from '../design/index.ts';
import { Check, Code } from '../design/service.ts';
import { money } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { hasKept } from '../session/unkept.ts';
import {
  api,
  canKeep,
  openAccount,
  others,
  remember,
  resume,
  resumed,
  type Session,
  session,
  unanswered,
} from '../session.ts';
import type { Sample } from './service-snippets.ts';
import { TryAnswer } from './try-answer.tsx';
import { TryFields } from './try-fields.tsx';
import { costOf, type Fault, formOf, requestOf, sampleOf } from './try-form.ts';

type Props = {
  readonly service: Schemas['CallableService'];
  readonly operation: Schemas['PricedOperation'] | null;
  /** What has been typed; null: nothing any more. */
  readonly onTyped: (sample: Sample | null) => void;
};

/** The key of an account that was opened here, until its owner says that it is stored, or signs out. */
const opened = signal<Schemas['CreatedKey'] | null>(null);
effect(() => {
  if (session.value === null && others.value.length === 0) opened.value = null;
});

// A visitor who leaves the page before that would lose the account: the browser asks first.
const ask = (event: Event): void => event.preventDefault();
effect(() => {
  const isAtRisk =
    opened.value !== null && session.value?.me.key_id === opened.value.key_id && !session.value.remembered;
  if (isAtRisk) addEventListener('beforeunload', ask);
  else removeEventListener('beforeunload', ask);
});

/** Makes a call in the page. */
export default function TryIt({ service, operation, onTyped }: Props) {
  const { t } = useI18n();
  const href = useHref();
  const mcpSession = useRef<string | null>(null);
  const [form, setForm] = useState(() => formOf(service, operation));
  /** What the call was agreed to cost: the form may have changed since. */
  const [agreedCost, setAgreedCost] = useState<Cost | null>(null);
  const [fault, setFault] = useState<{ readonly fault: Fault; readonly name: string } | null>(null);
  useEffect(() => () => onTyped(null), [onTyped]);
  const call = useCall();
  const sending = useRef<HTMLDivElement>(null);
  useAnswerInSight(sending, call.state);
  const who = session.value;
  const [keeps] = useState(canKeep);
  const isOwn = useIsOwn(service.id, who);
  const isRefused = who?.me.role === 'provider' && isOwn === false;
  const cost = isOwn === true ? { price: 0 } : costOf(service, operation, form);
  const freeLeft = useFreeLeft(service, who, call.state);
  const prices = { who, cost, isOwn: isOwn === true, service, freeLeft };
  // Somebody may be signed in: another account would be opened for nothing.
  const isUnknown = who === null && unanswered.value !== null;
  const isBusy = call.state?.phase === 'waiting' || call.state?.phase === 'receiving' || call.isOpening;

  const submit = (most?: number): void => {
    if (isBusy || isRefused || isUnknown) return;
    const usual = costOf(service, operation, form);
    const agreed = most === undefined ? usual : { ...usual, max_price: most };
    // Faults of the form are shown even without a key.
    const made = requestOf(service, form, '', agreed);
    setFault('fault' in made ? made : null);
    if ('fault' in made) return;
    setAgreedCost(isOwn === true ? { price: 0 } : agreed);
    void call
      .run((key) => {
        const again = requestOf(service, form, key, agreed, mcpSession.current);
        return 'request' in again ? again.request : made.request;
      })
      .then((state) => {
        // A server that keeps sessions names one when it is greeted.
        const named = state?.response?.headers.find(([name]) => name === 'mcp-session-id')?.[1];
        if (named !== undefined) mcpSession.current = named;
      });
  };
  return (
    <form
      class="stack try"
      // If the script fails, the browser must not put the input into an address.
      method="post"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit();
      }}
    >
      <TryFields
        service={service}
        operation={operation}
        form={form}
        onChange={(changed) => {
          setForm(changed);
          onTyped(sampleOf(changed));
        }}
      />
      {isRefused && <Note tone="warn">{t('try.providerKey')}</Note>}
      {fault !== null && (
        <p class="field-error" role="alert">
          {t(`try.fault.${fault.fault}`, { name: fault.name })}
        </p>
      )}
      {isUnknown && <FailureNote failure={unanswered.value} retry={() => void resume()} />}
      <div class="try-send" ref={sending}>
        <Button kind="primary" type="submit" busy={isBusy} disabled={isRefused || isUnknown || !resumed.value}>
          <Label {...prices} />
        </Button>
        {isBusy && !call.isOpening && <Button onClick={call.cancel}>{t('try.cancel')}</Button>}
        {who === null && resumed.value && (
          <a class="small" href={href('/console')}>
            {t('try.haveKey')}
          </a>
        )}
        <span class="faint small try-terms">
          <Terms {...prices} />
          {who === null && keeps && ` ${t('try.staysSignedIn')}`}
        </span>
      </div>
      {call.failure !== null && <FailureNote failure={call.failure} />}
      <NewKey who={who} />
      {call.state !== null && <TryAnswer state={call.state} cost={agreedCost ?? cost} onRetry={submit} />}
    </form>
  );
}

const OPENED = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });

/** Makes a call, after opening an account if there is none. */
function useCall() {
  const [state, setState] = useState<CallState | null>(null);
  const [isOpening, setIsOpening] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const controller = useRef<AbortController | null>(null);
  useEffect(() => () => controller.current?.abort(), []);
  const run = async (requestWith: (key: string) => Parameters<typeof send>[0]): Promise<CallState | null> => {
    setFailure(null);
    let key: string;
    const credential = session.value?.credential ?? null;
    try {
      if (session.value === null) {
        setIsOpening(true);
        // Some have several, and an operator sees those of everybody.
        const made = await openAccount(`My account ${OPENED.format(new Date())}`, 'buyer');
        opened.value = made;
        key = `${made.key_id}:${made.secret}`;
      } else key = await session.value.credential.now();
    } catch (error) {
      setFailure(error);
      return null;
    } finally {
      setIsOpening(false);
    }
    const mine = new AbortController();
    controller.current = mine;
    const renewed = credential?.renewed ?? null;
    const again = renewed === null ? null : async () => requestWith(await renewed(key));
    return send(requestWith(key), again, setState, mine.signal);
  };
  return { state, isOpening, failure, run, cancel: () => controller.current?.abort() };
}

/**
 * An answer below the visible part of the page would not be noticed. The page then scrolls to the button, with the answer below it.
 */
function useAnswerInSight(button: RefObject<HTMLElement | null>, state: CallState | null): void {
  const hasCome = state !== null && state.phase !== 'waiting';
  useEffect(() => {
    const element = button.current;
    // The form is as tall as the operation has parameters; an answer needs about a third of the screen.
    if (!hasCome || element === null || element.getBoundingClientRect().bottom < innerHeight * 0.6) return;
    const isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches;
    element.scrollIntoView({ block: 'start', behavior: isCalm ? 'auto' : 'smooth' });
  }, [hasCome]);
}

/** Whether a provider key's own account lists the service. Null: not a provider key, or not known yet. */
function useIsOwn(id: string, who: Session | null): boolean | null {
  const [isOwn, setIsOwn] = useState<boolean | null>(null);
  useEffect(() => {
    setIsOwn(null);
    if (who?.me.role !== 'provider') return;
    let isOver = false;
    // Only the listing's own account gets its endpoint.
    void api.value.GET('/api/v1/services/{id}', { params: { path: { id } } }).then(
      ({ data }) => {
        if (!isOver && data !== undefined) setIsOwn('endpoint' in data);
      },
      () => {},
    );
    return () => {
      isOver = true;
    };
  }, [id, who]);
  return isOwn;
}

/** How many free calls of the service the key's account has left: from the page of the service, then from each call. Null: not known. */
function useFreeLeft(
  { id, free_calls }: Schemas['CallableService'],
  who: Session | null,
  state: CallState | null,
): number | null {
  const [left, setLeft] = useState<number | null>(null);
  const keyId = who?.me.key_id;
  useEffect(() => {
    setLeft(null);
    if (keyId === undefined || free_calls === undefined) return;
    let isOver = false;
    void api.value.GET('/api/v1/discover/{id}', { params: { path: { id } } }).then(
      // A call made meanwhile has told it, and its figure is newer.
      ({ data }) => !isOver && setLeft((told) => told ?? data?.free_calls_left ?? null),
      () => {},
    );
    return () => {
      isOver = true;
    };
  }, [id, free_calls, keyId]);
  const told = state?.response?.freeLeft ?? null;
  useEffect(() => {
    if (told !== null) setLeft(told);
  }, [told, state?.response]);
  return left;
}

type PriceProps = {
  readonly who: Session | null;
  readonly cost: Cost;
  readonly isOwn: boolean;
  readonly service: Schemas['CallableService'];
  /** Null: not known. */
  readonly freeLeft: number | null;
};

/** Free calls cover nothing that costs more than the listing. */
const mayBeFree = ({ cost, service, freeLeft }: PriceProps): boolean =>
  mostOf(cost) > 0 &&
  freeLeft !== 0 &&
  service.free_calls !== undefined &&
  cost.price <= service.price &&
  mostOf(cost) <= mostOf(service);

function Label(props: PriceProps) {
  const { t, language } = useI18n();
  const { who, cost, freeLeft } = props;
  const most = money(mostOf(cost), language);
  const price = isByUse(cost) ? t('try.upTo', { price: most }) : most;
  const free = who === null ? t('try.freeCall') : freeLeft === null ? price : t('try.freeOf', { count: freeLeft });
  const costs = mostOf(cost) === 0 ? t('try.free') : mayBeFree(props) ? free : price;
  return (
    <>
      {t(who === null ? 'try.openAndCall' : 'try.call')} <span class="try-price">{costs}</span>
    </>
  );
}

/** What the price on the button means. */
function Terms(props: PriceProps) {
  const i18n = useI18n();
  const { t, language } = i18n;
  const { who, cost, isOwn } = props;
  if (isOwn) return <>{t('try.ownFree')}</>;
  if (mostOf(cost) === 0) return <>{t(who === null ? 'try.termsFreeNew' : 'try.termsFree')}</>;
  const most = { price: money(mostOf(cost), language) };
  if (mayBeFree(props)) {
    return (
      <>{who === null ? t('try.termsFreeCallNew', { price: costWords(cost, i18n) }) : t('try.termsFreeCall', most)}</>
    );
  }
  if (who === null) return <>{t('try.termsPaidNew', most)}</>;
  return <>{t(isByUse(cost) ? 'try.termsByUse' : 'try.termsPaid', most)}</>;
}

/** The secret of the account that was just opened: this is the only time that it is shown. */
function NewKey({ who }: { readonly who: Session | null }) {
  const { t } = useI18n();
  const made = opened.value;
  const heading = useRef<HTMLElement>(null);
  // The button that was pressed is another now, and a key that is shown once must not go unnoticed. Somebody who comes back to the page
  // keeps the focus.
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) heading.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [made?.key_id, who?.me.key_id]);
  if (made === null || who?.me.key_id !== made.key_id) return null;
  return (
    <section class="note note-good try-key" aria-label={t('try.newKey')}>
      <strong ref={heading} tabIndex={-1}>
        {t('try.newKey')}
      </strong>
      <span class="soft">{t(who.id === null ? 'try.newKeyText' : 'try.newKeyBrowser')}</span>
      <Code wrap label={t('try.apiKey')} text={`${made.key_id}:${made.secret}`} />
      <div class="row">
        <Button
          small
          onClick={() => {
            hasKept(made.key_id);
            opened.value = null;
          }}
        >
          {t('try.kept')}
        </Button>
        {who.id === null && (
          <Check
            label={t('try.remember')}
            checked={who.remembered}
            onChange={(event) => remember(event.currentTarget.checked)}
          />
        )}
      </div>
    </section>
  );
}
