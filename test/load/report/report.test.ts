import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logAxis, percentileAxis } from '../../../src/load/report/axis.ts';
import { compare, comparisonLines } from '../../../src/load/report/compare.ts';
import { reportOf } from '../../../src/load/report/page.ts';
import type { Second } from '../../../src/load/figures.ts';
import type { LoadResult } from '../../../src/load/result.ts';
import { SAMPLE as sample } from '../../support/load/sample.ts';

/** The sample with other pages in each second, and with another p99. */
function changed(p99: number, perSecond: (second: Second) => Partial<Second>): LoadResult {
  const latencies = { ...sample.latencies, pages: { ...sample.latencies.pages, p99 } };
  return {
    ...sample,
    latencies,
    series: sample.series.map((second) => ({ ...second, ...perSecond(second) })),
  };
}

const verdictOn = (name: string, before: LoadResult, now: LoadResult) =>
  compare(before, now).differences.find((difference) => difference.name === name)?.is;

test('two equal runs are the same in each figure', () => {
  const { differences, otherwise } = compare(sample, sample);
  assert.ok(differences.length >= 8);
  assert.deepEqual(new Set(differences.map(({ is }) => is)), new Set(['same']));
  assert.deepEqual(otherwise, []);
});

test('a difference beyond the noise of both runs is better or worse, and one within it is the same', () => {
  const steady = (p99: number) => changed(p99, ({ pages }) => ({ pages: { ...pages, p99 } }));
  assert.equal(verdictOn('pages, p99', steady(10), steady(11)), 'worse');
  assert.equal(verdictOn('pages, p99', steady(11), steady(10)), 'better');
  assert.equal(verdictOn('pages, p99', steady(10), steady(10.2)), 'same');
  const restless = (p99: number) =>
    changed(p99, ({ pages, second }) => ({ pages: { ...pages, p99: p99 * (second % 4 < 2 ? 0.4 : 1.6) } }));
  assert.equal(verdictOn('pages, p99', restless(10), restless(11)), 'same');
});

test('a comparison names what was not equal in the two runs', () => {
  const other = { ...sample, options: { ...sample.options, connections: 7 } };
  assert.match(
    comparisonLines(compare(sample, other)).join('\n'),
    /the connections differ: 32 before, 7 now/,
  );
});

test('the report shows the verdict, each puller and the id of each slow request, and refers to nothing outside', () => {
  const page = reportOf(sample, sample);
  for (const reason of sample.verdict.reasons)
    assert.ok(page.includes(reason.replaceAll('"', '&quot;')), reason);
  for (const { requestId, traceId } of sample.slowest)
    assert.ok(page.includes(requestId ?? '?') && page.includes(traceId ?? '?'));
  assert.equal(page.match(/<td>(full|slow|stalled)<\/td>/g)?.length, sample.pullers.length);
  assert.doesNotMatch(page, /(src|href)=|@import|<script|url\(/);
});

test('the report shows where the server spent its time, for each phase', () => {
  const page = reportOf(sample);
  assert.match(page, /<h2>The server's side<\/h2>/);
  for (const name of ['store, ms/s', 'transcoder, ms/s', 'socket, ms/s'])
    assert.match(page, new RegExp(`<th scope="col" class="n">${name}</th>`));
  const unknown = { reachable: false, reason: '/metrics answered 403' };
  assert.doesNotMatch(reportOf({ ...sample, target: { ...sample.target, metrics: unknown } }), />socket, ms/);
});

test('the stall of the sample is in the plots of latency and of waiting requests', () => {
  const page = reportOf(sample);
  const stalled = sample.series.find(({ pages }) => (pages.max ?? 0) >= 2_000);
  assert.ok(stalled);
  assert.match(page, new RegExp(`<title>second ${stalled.second}\\n[^<]*longest: 2 s</title>`));
  assert.match(page, /Requests without an answer yet/);
});

test('text that a server sends is shown as text', () => {
  const reasons = ['<img src=x onerror=alert(1)> & "more"'];
  const page = reportOf({ ...sample, verdict: { ...sample.verdict, reasons } });
  assert.ok(page.includes('&lt;img src=x onerror=alert(1)&gt; &amp; &quot;more&quot;'));
  assert.doesNotMatch(page, /<img/);
});

test('a report of a run that measured nothing is a page', () => {
  const nothing = {
    p50: null,
    p90: null,
    p99: null,
    p999: null,
    max: null,
    count: 0,
    mean: null,
    ticks: [],
    counts: [],
  };
  const latencies = { pages: nothing, firstByte: nothing, delay: nothing };
  const empty = { ...sample, latencies, series: [], phases: [], pullers: [], slowest: [], followers: null };
  assert.doesNotMatch(reportOf(empty), /NaN|undefined|Infinity/);
});

test('each tenth of the latencies has as much room on the axis of percentiles', () => {
  const axis = percentileAxis(10_000);
  const [p90, p99, p999] = [0.9, 0.99, 0.999].map((share) => axis.place(share));
  assert.ok(p90 !== undefined && p99 !== undefined && p999 !== undefined);
  assert.ok(Math.abs(p90 * 2 - p99) < 1e-9 && Math.abs(p90 * 3 - p999) < 1e-9);
  const log = logAxis(1, 1_000, String);
  assert.deepEqual(
    log.ticks.map(({ label }) => label),
    ['1', '10', '100', '1000'],
  );
});
