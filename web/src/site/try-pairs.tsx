import { Button } from '../design/index.ts';
import { useI18n } from '../i18n/i18n.tsx';
import type { Pair } from './service-request.ts';

/** Any number of rows with a name and a value. */
export function Pairs({
  title,
  pairs,
  onChange,
}: {
  readonly title: string;
  readonly pairs: readonly Pair[];
  readonly onChange: (pairs: readonly Pair[]) => void;
}) {
  const { t } = useI18n();
  const change = (at: number, changes: Partial<Pair>): void =>
    onChange(pairs.map((pair, i) => (i === at ? { ...pair, ...changes } : pair)));
  return (
    <div class="stack-tight try-pairs">
      {pairs.map((pair, at) => (
        <div key={at} class="try-pair">
          <input
            class="input input-mono"
            aria-label={t('try.pairName', { title, number: at + 1 })}
            placeholder={t('try.name')}
            value={pair.name}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => change(at, { name: event.currentTarget.value })}
          />
          <input
            class="input input-mono"
            aria-label={t('try.pairValue', { title, number: at + 1 })}
            placeholder={t('try.value')}
            value={pair.value}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => change(at, { value: event.currentTarget.value })}
          />
          <Button
            kind="quiet"
            small
            aria-label={t('try.removePair', { title, number: at + 1 })}
            onClick={() => onChange(pairs.filter((_, i) => i !== at))}
          >
            ✕
          </Button>
        </div>
      ))}
      <div>
        <Button small onClick={() => onChange([...pairs, { name: '', value: '' }])}>
          {t('try.addPair', { title })}
        </Button>
      </div>
    </div>
  );
}
