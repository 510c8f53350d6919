import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { barsPath, DAY_S, linePath, lonely, type Scale, timeMarks, valueMarks } from './chart-shapes.ts';
import { colourOf, type Series, type Unit } from './series.ts';

export type PlotProps = {
  readonly times: readonly number[];
  readonly series: readonly Series[];
  /** What is drawn of each series: its values, or the sums of those that are stacked. */
  readonly drawn: readonly (readonly (number | null)[])[];
  readonly format: (value: number) => string;
  readonly top: number | undefined;
  readonly whole: boolean;
  readonly unit: Unit;
  readonly height: number;
  readonly language: string;
};

/** Charts of more days than this also show the year beside the pointer. */
const MOST_OF_A_YEAR = 300;

/** Pixels above and below the values: half a number, and the times. */
const ABOVE = 8;
const BELOW = 30;

type Area = { readonly left: number; readonly width: number; readonly height: number };

/** The picture of a chart: axes, lines or bars, and what the pointer is at. */
export function Plot(props: PlotProps) {
  const { times, series, drawn, format, top, whole, unit, height: outer, language } = props;
  const frame = useRef<HTMLDivElement>(null);
  const [{ width: outerWidth, font }, setFrame] = useState({ width: 0, font: '' });
  useLayoutEffect(() => {
    const element = frame.current as HTMLDivElement;
    const measure = (): void =>
      setFrame({ width: element.clientWidth, font: `12px ${getComputedStyle(element).fontFamily}` });
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);

  const highest = Math.max(0, ...drawn.flat().map((value) => value ?? 0));
  const end = top ?? (highest > 0 ? highest * 1.1 : 1);
  const height = outer - ABOVE - BELOW;
  const marks = valueMarks(end, height, whole).map((value) => [value, format(value)] as const);
  const texts = marks.map(([, text]) => text);
  const left = Math.ceil(Math.max(24, widthOf(texts, font))) + 12;
  // Half of the last time is to the right of its mark.
  const width = Math.max(1, outerWidth - left - (unit === 'day' ? 24 : 36));

  const hasBars = series.some(({ kind }) => kind === 'bar');
  const [first = 0, second = first + DAY_S] = times;
  const step = second - first;
  // A bar is centred on its time: without room the first and the last would be cut in half.
  const room = hasBars || times.length < 2 ? step / 2 : 0;
  const [from, to] = [first - room, (times.at(-1) ?? first) + room];
  const x: Scale = (time) => left + ((time - from) / (to - from)) * width;
  const y: Scale = (value) => ABOVE + height * (1 - value / end);
  const timeText = axisText(unit, language);

  return (
    // Its room is there before its width is known.
    <div class="chart-plot" ref={frame} style={inPixels({ minHeight: outer })}>
      {outerWidth > 0 && (
        <>
          <svg width="100%" height={outer} aria-hidden="true">
            <path class="chart-grid" d={marks.map(([value]) => `M${left},${y(value)}h${width}`).join('')} />
            {marks.map(([value, text]) => (
              <text key={value} x={left - 5} y={y(value)} dy="0.35em" text-anchor="end">
                {text}
              </text>
            ))}
            {times.length > 0 &&
              timeMarks(from, to, width, unit).map((time) => (
                <text key={time} x={x(time)} y={outer - BELOW + 9} dy="0.9em" text-anchor="middle">
                  {timeText(time)}
                </text>
              ))}
            {series.map((its, at) => {
              const values = drawn[at] ?? [];
              const colour = `swatch${colourOf(its, at)}`;
              if (its.kind === 'bar')
                return (
                  <path
                    key={its.name}
                    class={`${colour} chart-bars`}
                    d={barsPath(times, values, x, y, x(second) - x(first))}
                  />
                );
              return (
                <g key={its.name} class={`${colour} chart-line`}>
                  <path d={linePath(times, values, x, y)} />
                  {lonely(values).map((index) => (
                    <circle key={index} cx={x(times[index] ?? 0)} cy={y(values[index] ?? 0)} r="3" />
                  ))}
                </g>
              );
            })}
          </svg>
          <AtPointer {...props} area={{ left, width, height }} x={x} y={y} />
        </>
      )}
    </div>
  );
}

type AtPointerProps = PlotProps & { readonly area: Area; readonly x: Scale; readonly y: Scale };

/** A line at the pointer, and a small box beside it: the time, and the value of each series. Without a pointer there is the table. */
function AtPointer({ times, series, drawn, format, unit, language, area, x, y }: AtPointerProps) {
  const [pointer, setPointer] = useState<{ readonly left: number; readonly top: number } | null>(null);
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (box.current !== null && pointer !== null) moveTo(box.current, area, pointer);
  });
  const at = pointer === null ? -1 : nearest(times, pointer.left, (time) => x(time) - area.left);
  const time = times[at];
  return (
    <div
      class="chart-over"
      role="presentation"
      aria-hidden="true"
      style={inPixels({ ...area, top: ABOVE })}
      onMouseMove={({ offsetX, offsetY }) => setPointer({ left: offsetX, top: offsetY })}
      onMouseLeave={() => setPointer(null)}
    >
      {pointer !== null && time !== undefined && (
        <>
          <div class="chart-pointer" style={inPixels({ left: pointer.left })} />
          {series.map((its, of) => {
            const value = drawn[of]?.[at] ?? null;
            if (its.kind === 'bar' || value === null) return null;
            const place = { left: x(time) - area.left, top: y(value) - ABOVE };
            return <div key={its.name} class={`chart-point swatch${colourOf(its, of)}`} style={inPixels(place)} />;
          })}
          <div class="chart-tip" ref={box}>
            <strong>{pointerText(unit, language, times.length)(time)}</strong>
            {series.map((its, of) => {
              const value = its.values[at] ?? null;
              return (
                <span key={its.name} class="chart-tip-row">
                  <span class={`swatch swatch${colourOf(its, of)}`} />
                  {its.name}
                  <span class="chart-tip-value">{value === null ? '–' : format(value)}</span>
                </span>
              );
            })}
          </div>
        </>
      )}
    </div>
  );
}

/** Preact writes numbers without a unit. */
const inPixels = (style: Readonly<Record<string, number>>): Record<string, string> =>
  Object.fromEntries(Object.entries(style).map(([name, value]) => [name, `${value}px`]));

/** The index of the time nearest to a pixel, -1 without times. */
function nearest(times: readonly number[], pixel: number, x: Scale): number {
  let best = -1;
  let least = Infinity;
  times.forEach((time, at) => {
    const distance = Math.abs(x(time) - pixel);
    if (distance < least) [best, least] = [at, distance];
  });
  return best;
}

/** Pixels between the pointer and the box. */
const AWAY = 14;

/** To the right of the pointer, or to the left if there is more room, and never outside the chart. */
function moveTo(box: HTMLElement, area: Area, { left, top }: { readonly left: number; readonly top: number }): void {
  const { offsetWidth: width, offsetHeight: height } = box;
  const x = left < area.width / 2 ? left + AWAY : left - AWAY - width;
  const y = Math.max(0, Math.min(top - height / 2, area.height - height));
  box.style.transform = `translate(${Math.max(-area.left, Math.min(x, area.width - width))}px, ${y}px)`;
}

type TimeText = (time: number) => string;

/** How a time is written on the axis. At the beginning of a day its name is written; in between, hours. */
function axisText(unit: Unit, language: string): TimeText {
  const day = new Intl.DateTimeFormat(language, { month: 'short', day: 'numeric', timeZone: 'UTC' });
  const hour = new Intl.DateTimeFormat(language, { hour: 'numeric', minute: '2-digit', timeZone: 'UTC' });
  const second = new Intl.DateTimeFormat(language, { hour: 'numeric', minute: '2-digit', second: '2-digit' });
  return (time) => {
    const text = unit === 'second' ? second : unit === 'hour' && time % DAY_S !== 0 ? hour : day;
    return text.format(time * 1_000);
  };
}

/** How a time is written beside the pointer. */
function pointerText(unit: Unit, language: string, times: number): TimeText {
  const year = times > MOST_OF_A_YEAR ? ({ year: 'numeric' } as const) : {};
  const hour = unit === 'hour' ? ({ hour: 'numeric', minute: '2-digit' } as const) : {};
  const day = { weekday: 'short', month: 'short', day: 'numeric', timeZone: 'UTC', ...year, ...hour } as const;
  const text = new Intl.DateTimeFormat(language, unit === 'second' ? { timeStyle: 'medium' } : day);
  return (time) => text.format(time * 1_000);
}

/** Pixels that the widest of these texts takes. @param font empty: not known yet */
function widthOf(texts: readonly string[], font: string): number {
  if (font === '') return 0;
  const pen = document.createElement('canvas').getContext('2d');
  if (pen === null) return 0;
  pen.font = font;
  return Math.max(0, ...texts.map((text) => pen.measureText(text).width));
}
