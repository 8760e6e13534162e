import { setTimeout as sleep } from 'node:timers/promises';
import { VERSION } from '../base/version.ts';
import { ClientMeter } from './client-side.ts';
import { Faults } from './faults.ts';
import type { Latencies, Phase } from './figures.ts';
import { findRate, judgeStep } from './find.ts';
import { Followers } from './followers.ts';
import type { Requests } from './http/requests.ts';
import type { Live } from './live.ts';
import type { LoadCommand } from './options.ts';
import { Pages } from './pages.ts';
import { shownOptions, type Plan } from './plan.ts';
import { fairnessOf, Pullers } from './pullers.ts';
import { Recorder } from './recorder.ts';
import type { FoundRate, LoadResult, Target } from './result.ts';
import { steadySchedule } from './schedule.ts';
import { ServerMeter } from './server-meter.ts';
import type { MetricsPlace } from './target.ts';
import { verdictOf } from './verdict.ts';

/** How long the run waits for answers after its last request. Milliseconds. */
const DRAIN_MS = 10_000;
/** A server that cannot be reached for this long ends the run. Seconds. */
const GONE_SECONDS = 10;
/** One page in this time is read as JSON and checked. Milliseconds. */
const CHECK_MS = 50;
const SECOND_MS = 1000;

/** Where a run sends its requests. */
interface RunPlaces {
  readonly requests: Requests;
  readonly metricsAt: MetricsPlace;
}

/** One run: the load, and what it measures. */
export class Run {
  readonly #command: LoadCommand;
  readonly #plan: Plan;
  readonly #target: Target;
  readonly #live: Live;
  readonly #startedAt = new Date();
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #faults = new Faults();
  readonly #client = new ClientMeter();
  readonly #recorder: Recorder;
  readonly #pages: Pages | null;
  readonly #pullers: Pullers;
  readonly #followers: Followers | null;
  readonly #server: ServerMeter | null;
  #failure: string | null = null;
  #pagesLatencies: Latencies | null = null;
  #found: FoundRate | null = null;

  /** `signal` ends the run early; what was measured until then is the result. */
  constructor(
    command: LoadCommand,
    plan: Plan,
    target: Target,
    { requests, metricsAt }: RunPlaces,
    live: Live,
    signal: AbortSignal,
  ) {
    this.#command = command;
    this.#plan = plan;
    this.#target = target;
    this.#live = live;
    this.#signal = AbortSignal.any([signal, this.#stop.signal]);
    const now = () => performance.now();
    this.#recorder = new Recorder(now, () => ({
      asked: this.#pages?.asked ?? null,
      waiting: this.#pages?.waiting ?? 0,
      streams: this.#pullers.open,
      followers: this.#followers?.open ?? 0,
      client: this.#client.read(),
    }));
    const shared = { requests, recorder: this.#recorder, faults: this.#faults, random: Math.random };
    const codings = command.pageCompression === null ? ['br', 'gzip', 'none'] : [command.pageCompression];
    this.#pages =
      plan.mix &&
      new Pages({
        ...shared,
        now,
        mix: plan.mix,
        connections: command.connections,
        codings: codings.map((coding) => (coding === 'none' ? 'identity' : coding)),
        checkMs: CHECK_MS,
      });
    this.#pullers = new Pullers({ ...shared, ...command, urls: plan.streams, full: command.pullers });
    this.#followers =
      plan.follow === null
        ? null
        : new Followers({ ...shared, path: plan.follow, count: command.followers, write: plan.write });
    this.#server = target.metrics.reachable ? new ServerMeter(metricsAt) : null;
  }

  /** Runs to the end. Rejects with Refused or Interrupted when the server has no feed to follow. */
  async run(): Promise<LoadResult> {
    const timer = setInterval(() => this.#second(), SECOND_MS);
    try {
      await this.#server?.read();
      await this.#followers?.start();
      this.#pullers.start();
      await (this.#command.find ? this.#find() : this.#hold());
    } finally {
      clearInterval(timer);
      await Promise.all([this.#pullers.stop(), this.#followers?.stop()]);
      this.#pages?.close();
      this.#server?.close();
      this.#client.stop();
    }
    this.#recorder.finish();
    return this.#result();
  }

  /** The ramp, and then the rate. */
  async #hold(): Promise<void> {
    const { pages, rampSeconds, forSeconds } = this.#command;
    const asked = typeof pages === 'number' ? pages : null;
    if (pages === 'max') this.#pages?.startClosed();
    else if (pages !== null) this.#pages?.start(steadySchedule(pages, rampSeconds * SECOND_MS));
    if (rampSeconds > 0) {
      await this.#wait(rampSeconds);
      this.#recorder.endPhase('ramp', asked);
    }
    if (this.#signal.aborted) return;
    await this.#wait(forSeconds);
    await this.#pages?.stop(DRAIN_MS, this.#signal);
    this.#pagesLatencies = this.#recorder.phase.histograms.pages.latencies();
    this.#recorder.endPhase('steady', asked);
  }

  async #find(): Promise<void> {
    const { find: condition, pages, rampSeconds, forSeconds } = this.#command;
    if (!condition || typeof pages !== 'number') throw new TypeError('a search without a condition');
    const step = async (rate: number): Promise<Pick<Phase, 'held' | 'broke'>> => {
      this.#pages?.start(steadySchedule(rate, rampSeconds * SECOND_MS));
      if (rampSeconds > 0) {
        await this.#wait(rampSeconds);
        this.#recorder.endPhase('ramp', rate);
      }
      await this.#wait(forSeconds);
      await this.#pages?.stop(DRAIN_MS, this.#signal);
      const latencies = this.#recorder.phase.histograms.pages.latencies();
      const { counts } = this.#recorder.phase;
      const judged = judgeStep(condition, { counts, pages: latencies, client: this.#client.read() });
      this.#recorder.endPhase('step', rate, judged);
      if (judged.held || this.#pagesLatencies === null) this.#pagesLatencies = latencies;
      this.#live.line(`${rate} pages/s: ${judged.broke ?? `held, p99 ${latencies.p99 ?? '-'} ms`}`);
      return judged;
    };
    this.#found = await findRate(condition, pages, step, this.#signal);
  }

  async #wait(seconds: number): Promise<void> {
    await sleep(seconds * SECOND_MS, undefined, { signal: this.#signal }).catch(() => undefined);
  }

  #second(): void {
    this.#recorder.roll();
    const { series } = this.#recorder;
    const last = series.at(-1);
    if (last) this.#live.second(last);
    void this.#server?.read().then((side) => side && this.#recorder.setServer(side));
    const recent = series.slice(-GONE_SECONDS);
    const isGone =
      recent.length === GONE_SECONDS &&
      recent.every(
        ({ ok, notModified, rows, lines, cut }) => ok + notModified + rows + lines === 0 && cut > 0,
      );
    if (!isGone || this.#failure !== null) return;
    this.#failure = `the server could not be reached for ${GONE_SECONDS} s`;
    this.#stop.abort(new Error(this.#failure));
  }

  #result(): LoadResult {
    const recorder = this.#recorder;
    const { counts, sums, histograms } = recorder.whole;
    const options = shownOptions(this.#command, this.#plan);
    const rows = this.#pullers.rows();
    const { series, phases } = recorder;
    const followers = this.#followers?.result(sums.lines, sums.heartbeats) ?? null;
    const judged = { counts, series, followers, faults: this.#faults, target: this.#target, options };
    return {
      form: 1,
      version: VERSION,
      startedAt: this.#startedAt.toISOString(),
      seconds: Math.round(recorder.seconds * 10) / 10,
      interrupted: this.#signal.aborted,
      target: this.#target,
      options,
      phases,
      series,
      latencies: {
        pages: this.#pagesLatencies ?? histograms.pages.latencies(),
        firstByte: histograms.firstByte.latencies(),
        delay: histograms.delay.latencies(),
      },
      pullers: rows,
      fairness: fairnessOf(rows),
      followers,
      slowest: recorder.slowest,
      found: this.#found,
      verdict: verdictOf({
        ...judged,
        failure: this.#failure,
        isInterrupted: this.#signal.aborted && this.#failure === null,
      }),
    };
  }
}
