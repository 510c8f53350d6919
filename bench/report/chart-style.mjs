// @ts-check
// Sizes and colours of the chart.

export const width = 960;
export const margin = 28;

export const colors = {
  paper: '#ffffff',
  frame: '#d0d7de',
  ink: '#1f2328',
  quiet: '#59636e',
  grid: '#e3e7eb',
  ours: '#0f766e',
  theirs: '#9aa5b1',
  missed: '#b42318',
};

export const style = `text{font:13px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:${colors.ink}}
.title{font-size:20px;font-weight:600}.panel{font-size:15px;font-weight:600}.quiet{fill:${colors.quiet}}
.strong{font-weight:600}.end{text-anchor:end}.middle{text-anchor:middle}.missed{fill:${colors.missed};font-weight:600}`;
