import { counted, printable } from '../terminal/text.ts';
import type { Phase } from './figures.ts';
import { badOf, ms } from './live.ts';
import type { LoadResult } from './result.ts';

const MOST_SLOW = 3;

/** The result in a few lines, for a terminal. */
export function summaryOf(result: LoadResult): string {
  const { target, found, verdict } = result;
  const lines = [
    `${target.url}: sluice ${target.version ?? 'of unknown version'}, ${result.seconds} s${result.interrupted ? ', ended early' : ''}`,
    ...result.phases.flatMap(phaseLines),
    ...pullerLines(result),
    ...followerLines(result),
    ...result.slowest
      .slice(0, MOST_SLOW)
      .map(
        ({ latency, query, status, requestId, traceId }) =>
          `slow: ${ms(latency)} ms, ${status} ${query}, request id ${requestId ?? 'unknown'}${traceId === null ? '' : `, trace ${traceId}`}`,
      ),
    ...(found
      ? [`capacity with ${found.condition}: ${rate(found.held)}; ${found.why ?? 'no rate broke it'}`]
      : []),
    ...verdict.clientLimits.map((text) => `the client was the limit: ${text}`),
    ...verdict.notes.map((text) => `note: ${text}`),
    verdict.exitCode === 0 ? 'all answers were good' : `not good: ${verdict.reasons.join('; ')}`,
  ];
  return `${lines.map(printable).join('\n')}\n`;
}

function rate(held: number | null): string {
  return held === null ? 'no rate held' : `${counted(held)} pages/s`;
}

function phaseLines({ kind, from, to, asked, counts, ...phase }: Phase): string[] {
  const { pages, firstByte, delay, server, client } = phase;
  const name = `${kind} ${from}-${to} s`;
  const lines = [];
  if (pages.p50 !== null)
    lines.push(
      `${counted(phase.pagesPerSecond)}${asked === null ? '' : ` of ${counted(asked)}`} pages/s, p50 ${ms(pages.p50)}, p90 ${ms(pages.p90)}, p99 ${ms(pages.p99)}, p99.9 ${ms(pages.p999)}, max ${ms(pages.max)} ms`,
    );
  if (phase.rowsPerSecond > 0)
    lines.push(
      `${counted(phase.rowsPerSecond)} rows/s, ${counted(Math.round(phase.bytesPerSecond / 1e5) / 10)} MB/s, first byte p50 ${ms(firstByte.p50)}, p99 ${ms(firstByte.p99)} ms`,
    );
  if (delay.p50 !== null) lines.push(`a write to its line: p50 ${ms(delay.p50)}, max ${ms(delay.max)} ms`);
  const bad = badOf(counts);
  lines.push(
    `${counted(counts.ok)} good, ${counted(counts.notModified)} not modified${bad.length > 0 ? `, ${bad.join(', ')}` : ''}`,
  );
  if (server)
    lines.push(
      `server: ${share(server.cpu)} of a core, ${mebibytes(server.memory)} MiB, loop delay p99 ${ms(server.loopDelay)} ms, store ${ms(server.store)}, transcoder ${ms(server.transcoder)}, socket ${ms(server.socket)} ms/s, ${server.streams ?? '-'} streams; client: ${share(client.cpu)} of a core`,
    );
  return lines.map((text) => `${name}: ${text}`);
}

function pullerLines({ pullers, fairness }: LoadResult): string[] {
  if (pullers.length === 0) return [];
  const of = (proof: string) => pullers.filter((row) => row.proof === proof).length;
  const proofs = (['proved', 'partly', 'framing', 'wrong', 'none'] as const)
    .filter((proof) => of(proof) > 0)
    .map((proof) => `${of(proof)} ${proof}`);
  const gap = Math.max(...pullers.map(({ longestGap }) => longestGap));
  const lines = [`pullers: ${proofs.join(', ')}; longest gap ${ms(gap)} ms`];
  if (fairness)
    lines.push(
      `fairness: ${counted(fairness.slowest)} to ${counted(fairness.fastest)} rows/s each, index ${fairness.index}`,
    );
  return lines;
}

function followerLines({ followers }: LoadResult): string[] {
  if (!followers) return [];
  const { asked, begun, open, lines, heartbeats, longestSilence, writes, reached, missed } = followers;
  return [
    `followers: ${counted(open)} of ${counted(asked)} open at the end (${counted(begun)} began), ${counted(lines)} lines, ${counted(heartbeats)} checkpoints, longest silence ${ms(longestSilence)} ms${writes > 0 ? `, ${counted(writes)} writes, ${counted(reached)} of their lines came, ${counted(missed)} were missed` : ''}`,
  ];
}

function share(cpu: number | null): string {
  return cpu === null ? '-' : `${Math.round(cpu * 100)} %`;
}

function mebibytes(bytes: number | null): string {
  return bytes === null ? '-' : counted(Math.round(bytes / 1024 / 1024));
}
