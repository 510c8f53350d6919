import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { findPromtool } from '../../scripts/local/promtool-install.mjs';
import { scratchDir } from '../support/stores.ts';
import { queriesOf, readDashboards } from './watched.ts';

const [dashboard] = readDashboards();
const { panels } = dashboard as NonNullable<typeof dashboard>;

describe('the dashboard', () => {
  it('has queries that Prometheus can parse', async () => {
    const queries = queriesOf(dashboard as NonNullable<typeof dashboard>).filter(
      (query) => !query.startsWith('label_values('),
    );
    const rules = queries.map((query, i) => ({
      record: `query_${i}`,
      expr: query.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*'),
    }));
    const file = path.join(mkdtempSync(path.join(scratchDir(), 'queries-')), 'rules.yml');
    writeFileSync(file, stringify({ groups: [{ name: 'queries', rules }] }));
    const { stdout } = await promisify(execFile)(findPromtool(), ['check', 'rules', file]);
    expect(stdout).toContain(`${queries.length} rules found`);
  });

  it('uses the data source that is provisioned beside it', () => {
    const provisioned = parse(readFileSync('deploy/grafana/provisioning/datasources/prometheus.yml', 'utf8'));
    for (const { title, type, datasource } of panels)
      if (type !== 'row') expect([title, datasource?.uid]).toEqual([title, provisioned.datasources[0].uid]);
  });

  it('has panels that do not overlap, each with its own id', () => {
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });
});
