// @ts-check
// Loaded into a gateway by NODE_OPTIONS: appends, four times a second, the longest time for which its event loop was held. The
// gateway has no such metric, because sampling costs an idle process 0.4 % of a core.

import { appendFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const file = process.env.BENCH_LOOP_DELAY_FILE;
if (file !== undefined) {
  const resolutionMs = 1;
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  setInterval(() => {
    // The histogram has the time between two samples.
    if (delay.count > 0) appendFileSync(file, `${Date.now()} ${Math.max(0, delay.max / 1e6 - resolutionMs)}\n`);
    delay.reset();
  }, 250).unref();
}
