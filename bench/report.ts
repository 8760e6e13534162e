import { execFileSync } from 'node:child_process';
import { cpus, release, totalmem } from 'node:os';
import { median, type Round } from './measure.ts';
import type { Scenario } from './scenarios.ts';

/** All rounds of one candidate in one scenario. */
export interface Series {
  readonly candidate: string;
  readonly rounds: readonly Round[];
}

export interface Results {
  readonly machine: string;
  readonly commit: string;
  readonly command: string;
  readonly date: string;
  readonly rows: number;
  readonly scenarios: readonly { readonly scenario: Scenario; readonly series: readonly Series[] }[];
}

/** The line without which a number means nothing. */
export function machineLine(): string {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} cores ${cpu?.model.trim() ?? ''}, ${memory} GiB, Linux ${release()}, Node ${process.versions.node}`;
}

export function commit(): string {
  const head = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  const changed =
    execFileSync('git', ['status', '--porcelain', '--', 'src', 'bench'], { encoding: 'utf8' }).trim() !== '';
  return changed ? `${head} with changes` : head;
}

/** The results as a Markdown table: medians, spread, and each candidate's ratio to sluice. */
export function table({ scenarios }: Results): string {
  const lines = [
    '| scenario | candidate | per second (median) | min - max | sluice is | CPU | cores |',
    '|---|---|---:|---|---:|---:|---:|',
  ];
  for (const { scenario, series } of scenarios) {
    const own = median(
      series.find(({ candidate }) => candidate === 'sluice')?.rounds.map((round) => round.perSecond) ?? [],
    );
    for (const { candidate, rounds } of series) {
      const speeds = rounds.map((round) => round.perSecond);
      const unit = scenario.kind === 'stream' ? 's/1M rows' : 'ms/page';
      lines.push(
        `| ${scenario.name} | ${candidate} | ${count(median(speeds))} | ${count(Math.min(...speeds))} - ${count(Math.max(...speeds))} | ` +
          `${candidate === 'sluice' ? '' : `${(own / median(speeds)).toFixed(2)}x`} | ` +
          `${median(rounds.map((round) => round.cpu)).toFixed(2)} ${unit} | ${median(rounds.map((round) => round.cores)).toFixed(2)} |`,
      );
    }
  }
  return lines.join('\n');
}

function count(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}
