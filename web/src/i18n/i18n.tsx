import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Language } from './languages.ts';
import type en from './messages/en.json';

/** A message has a text, or a text for each plural category of `Intl.PluralRules` that the language has. `{name}` is replaced. */
type MessageKey = keyof typeof en;
export type Messages = Readonly<Record<MessageKey, string | Readonly<Record<string, string>>>>;
type Values = Readonly<Record<string, string | number>>;

export type I18n = {
  readonly language: Language;
  /** The text. If the message has plural forms, `values.count` chooses the form. */
  readonly t: (key: MessageKey, values?: Values) => string;
};

export function makeI18n(language: Language, messages: Messages): I18n {
  const plurals = new Intl.PluralRules(language);
  const numbers = new Intl.NumberFormat(language);
  const show = (value: string | number | undefined): string =>
    typeof value === 'number' ? numbers.format(value) : (value ?? '');
  return {
    language,
    t: (key, values = {}) => {
      const message = messages[key];
      const text =
        typeof message === 'string' ? message : (message[plurals.select(Number(values.count))] ?? message.other ?? key);
      return text.replace(/\{(\w+)\}/g, (_, name: string) => show(values[name]));
    },
  };
}

const Context = createContext<I18n | null>(null);
export const I18nProvider = Context.Provider;

export function useI18n(): I18n {
  const i18n = useContext(Context);
  if (i18n === null) throw new Error('no language was chosen');
  return i18n;
}
