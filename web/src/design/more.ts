// The components that the catalog does without. They are a file of their own, so that it does not load them.

export { Bar } from './bar.tsx';
export { Card } from './card.tsx';
export { Code, CopyButton } from './code.tsx';
export { ConfirmDialog, Dialog } from './dialog.tsx';
export { Check, Field, Select, TextArea, TextInput } from './field.tsx';
export { useChosenInView } from './in-view.ts';
export type { Series } from './series.ts';
export { Stat, Stats } from './stats.tsx';
export { type Column, Table } from './table.tsx';
export { Tabs } from './tabs.tsx';
export { TimeChart } from './time-chart.tsx';
