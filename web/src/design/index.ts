// The design system of the pages, used by all rooms. Styles: tokens.css, base.css, components.css.

export { Badge, type Tone } from './badge.tsx';
export { Bar } from './bar.tsx';
export { Button, LinkButton } from './button.tsx';
export { Card } from './card.tsx';
export { Code, CopyButton } from './code.tsx';
export { ConfirmDialog, Dialog } from './dialog.tsx';
export { Check, Field, Select, TextArea, TextInput } from './field.tsx';
export { useChosenInView } from './in-view.ts';
export { begin, ProgressBar } from './progress.tsx';
export type { Series } from './series.ts';
export { type Shape, Skeleton, SkeletonCard, SkeletonPage, SkeletonRows, SkeletonStats } from './skeleton.tsx';
export { Empty, FailureNote, Note } from './states.tsx';
export { Stat, Stats } from './stats.tsx';
export { type Column, Table } from './table.tsx';
export { Tabs } from './tabs.tsx';
export { TimeChart } from './time-chart.tsx';
export { say, Toasts } from './toasts.tsx';
