// The components of the page of a service, which the catalog does without. They are a file of their own, so that it does not load them.

export { Card } from './card.tsx';
export { Code, CopyButton } from './code.tsx';
export { Check, Field, Select, TextArea, TextInput } from './field.tsx';
export type { Series } from './series.ts';
export { Stat, Stats } from './stats.tsx';
export { Tabs } from './tabs.tsx';
export { TimeChart } from './time-chart.tsx';
